import { ModuleError } from "@skein/cli/node";
import { dataAxis, everyRankAxis, type Job, meshOf, numBatchParts } from "@skein/job/node";
import { resultSpecs } from "@skein/step/node";
import { type Graph, leafPaths } from "@skein/tensor-core";
import { formatSpec, isHalf, operators, specOf } from "@skein/tensor-core/backend";
import type { TracedModel } from "./traced-model.ts";

/** Input of a training step that can make a value differ between ranks, or between microbatches. */
type Source = "the samples" | "the random key" | "the number of its rank";

/**
 * Returns for each node of a graph the input that can make its value differ between ranks, indexed by node id.
 * Undefined: the value is equal on all ranks. The result of a collective over all ranks is equal on all ranks.
 *
 * @param sourceOf description of each graph input that can differ between ranks, by node id.
 * @param shared mesh axes along which a collective makes values equal.
 */
const ownSources = (
  graph: Graph,
  sourceOf: ReadonlyMap<number, Source>,
  shared: readonly string[],
): (Source | undefined)[] => {
  const found: (Source | undefined)[] = [];
  for (const { id, op, inputs, params } of graph.nodes) {
    const { isReplicated, role } = operators[op] ?? {};
    const isShared = isReplicated === true && shared.includes(params["axis"] as string);
    found[id] =
      role === "position"
        ? "the number of its rank"
        : (sourceOf.get(id) ??
          (isShared ? undefined : inputs.map(({ node }) => found[node]).find((own) => own !== undefined)));
  }
  return found;
};

/**
 * Requires that the state of a model does not differ between ranks. After each step, f32 state is averaged over ranks.
 * State of other dtypes must be equal on all ranks, so it must not depend on the samples or on the random key. State
 * must not be f16 or bf16.
 *
 * @param what name of the model in errors.
 * @throws ModuleError if a leaf is f16 or bf16, or if a leaf of another dtype than f32 depends on values that differ
 * between ranks or between microbatches.
 */
export const requireSharedState = (
  { init, loss }: Pick<TracedModel, "init" | "loss">,
  job: Job,
  what: string,
): void => {
  const [parts, accumulate] = [numBatchParts(job), job.accumulate ?? 1];
  const { graph } = loss.value;
  // The order of graph inputs is: parameters and state, leaves of the batch, random key.
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
      `${what}: state ${path} is ${formatSpec(spec)} and depends on ${source}, so it would differ between ${who}; make it f32, which ranks average, or compute it only from parameters and state`,
    );
  });
};
