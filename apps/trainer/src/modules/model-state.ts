import { type Graph, leafPaths } from "@skein/tensor-core";
import { formatSpec, isHalf, operators, specOf } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { dataAxis, everyRankAxis, meshOf, numBatchParts } from "../job/mesh.ts";
import { resultSpecs } from "../task/result-specs.ts";
import type { TracedModel } from "./traced-model.ts";

/** What ranks, and parts of a batch, have differently when a step begins. */
type Source = "the samples" | "the random key" | "the number of its rank";

/**
 * What of a rank's own each node is computed from, if anything. A collective along all ranks makes what they have
 * differently the same.
 */
const ownSources = (
  graph: Graph,
  sourceOf: ReadonlyMap<number, Source>,
  shared: readonly string[],
): (Source | undefined)[] => {
  const found: (Source | undefined)[] = [];
  for (const { id, op, inputs, params } of graph.nodes) {
    const { isAlike, role } = operators[op] ?? {};
    const isShared = isAlike === true && shared.includes(params["axis"] as string);
    found[id] =
      role === "position"
        ? "the number of its rank"
        : (sourceOf.get(id) ??
          (isShared ? undefined : inputs.map(({ node }) => found[node]).find((own) => own !== undefined)));
  }
  return found;
};

/**
 * Check that a model keeps no state that ranks would have differently. After a step the ranks take the mean of state
 * that is f32; all other state must be the same on all of them, so it depends neither on the samples nor on the random
 * key. No state is f16 or bf16.
 *
 * @param what names the model in errors.
 * @throws ModuleError for a leaf of 16 bits, and for one that is not f32 and depends on what ranks, or parts of a
 * batch, have differently.
 */
export const requireSharedState = (
  { init, loss }: Pick<TracedModel, "init" | "loss">,
  job: Job,
  what: string,
): void => {
  const [parts, accumulate] = [numBatchParts(job), job.accumulate ?? 1];
  const { graph } = loss.value;
  // Parameters and state, then the leaves of the batch, then the key.
  const own = graph.inputs.slice(init.graph.outputs.length);
  const sourceOf = new Map(
    own.map((node, i): [number, Source] => [node, i < own.length - 1 ? "the samples" : "the random key"]),
  );
  const sources = ownSources(graph, sourceOf, [dataAxis, everyRankAxis(meshOf(job))]);
  leafPaths(resultSpecs(loss.value)).forEach((full, i) => {
    if (!full.startsWith("state.")) return;
    const path = full.slice("state.".length);
    const ref = graph.outputs[i]!;
    const spec = specOf(graph, ref);
    const source = sources[ref.node];
    if (isHalf(spec.dtype))
      throw new ModuleError(
        `${what}: state ${path} is ${formatSpec(spec)}, but a step computes with state in 32 bits; make it f32, and cast it to ${spec.dtype} where it is read`,
      );
    if (spec.dtype === "f32" || source === undefined || parts * accumulate === 1) return;
    const who = parts > 1 ? `${parts} ranks` : `${accumulate} parts of a batch`;
    throw new ModuleError(
      `${what}: state ${path} is ${formatSpec(spec)} and depends on ${source}, so that ${who} would each have another; make it f32, of which ranks take the mean, or compute it from parameters and state alone`,
    );
  });
};
