import { describe } from "../describe.ts";
import { didYouMean } from "../did-you-mean.ts";
import { isFloat } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { pullBack } from "../autodiff/pull-back.ts";
import { gatherTaps } from "../autodiff/tap.ts";
import { scalarLoss } from "../autodiff/vjp.ts";
import { full, identity } from "../functions/elementwise.ts";
import { optimizationBarrier } from "../functions/optimization-barrier.ts";
import { inPhase, type Mesh, type MeshCoordinates } from "../graph/emit.ts";
import { type Graph, keepDefinitions, type ValueRef } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { recomputeRegions, withoutRegions } from "../passes/recompute/recompute-regions.ts";
import type { TensorSpec } from "../shape.ts";
import { flattenTree, leafPaths, type MapTree, mapTree, unflattenTree } from "../tree.ts";
import { assignStages } from "./assign-stages.ts";
import { buildStages, type StepValues } from "./build-stages.ts";
import type { CutStep } from "./stage.ts";

/** Options of `cutStages`. */
export interface CutOptions {
  /**
   * Cuts of the step, in the order of the forward pass: the name of a tapped value, or the names of all values that are
   * passed from one stage to the next. One cut makes two stages.
   */
  readonly cuts: readonly (string | readonly string[])[];
  /** Number of ranks along each mesh axis, and the rank's coordinates, as in `trace`. */
  readonly mesh?: Mesh;
  readonly place?: MeshCoordinates;
  /** Rewrites of the whole step before it is cut, such as `mixedPrecision` or `rewriteSaved`. */
  readonly passes?: readonly ((graph: Graph) => Graph)[];
}

/** Values of each cut by name. @throws ArgumentError for a name that was not tapped, or that is in two cuts. */
const valuesOf = (cuts: readonly (readonly string[])[], taps: ReadonlyMap<string, Tensor>): Tensor[][] => {
  const names = cuts.flat();
  const duplicate = names.find((name, i) => names.indexOf(name) !== i);
  if (duplicate !== undefined)
    throw new ArgumentError(
      `cutStages: "${duplicate}" is in two cuts; tap it again, under another name, after the first`,
    );
  return cuts.map((cut) =>
    cut.map((name) => {
      const value = taps.get(name);
      if (value !== undefined) return value;
      const meant = didYouMean(name, [...taps.keys()]);
      throw new ArgumentError(
        `cutStages: no value is tapped as "${name}"${meant === undefined ? "" : `; did you mean "${meant}"?`}; tapped are ${[...taps.keys()].map((one) => `"${one}"`).join(", ") || "none"}: write tap("${name}", x) in the function`,
      );
    }),
  );
};

const isFloatTensor = ({ dtype }: Tensor): boolean => isFloat(dtype);

/** The value as a separate node, which no pass merges with another. */
const separate = (x: Tensor): Tensor => optimizationBarrier(x)[0]!;

/**
 * Cut a step into stages at values that its loss function names by `tap`: a forward and a backward graph per stage, for
 * pipelines of ranks, micro-batches, or parts of a model on different devices. All stages together compute the same as
 * `valueAndGrad`, with the same nodes. Gradients have the same bits, with one exception: if several stages share a
 * parameter and the first of them reads it more than once, its gradient is summed stage by stage. With
 * `mixedPrecision`, a product may be stored as f16 in one case and f32 in the other, because the cotangents of cuts are
 * results, too, and are operands of other products.
 *
 * A node belongs to the stage that needs it first. Nodes that depend on parameters alone, or on further arguments alone
 * (casts, masks, keys, constants), are computed in every stage that reads them; likewise, every stage gets the
 * parameters and arguments that it reads. A further result is computed in the stage of its operands. Passes are applied
 * to the step before it is cut, then `checkpoint` regions are repeated: recomputed nodes are part of the backward
 * graphs. A region must not span a cut.
 *
 * A backward graph gets each value of the forward pass once, and does not get values that it can rearrange from others;
 * `Stage.kept` lists the values.
 *
 * @param fn loss of parameters and further arguments, or `[loss, aux]`, as for `valueAndGradWithAux`.
 * @param args arrays or specs to trace with: parameters first.
 * @throws ArgumentError for a name that was not tapped, and for cuts that do not separate the stages: the message has
 * the value that is read across the cut.
 * Cost: O(stages · (nodes + edges)).
 * Source: the stages of GPipe, Huang et al. 2018, arXiv:1811.06965.
 * @example const { stages } = cutStages(model.loss, [params, batch], { cuts: ["block-3", "block-7"] });
 */
export const cutStages = <P, Rest extends readonly unknown[]>(
  fn: (params: P, ...rest: Rest) => Tensor | readonly [Tensor, unknown],
  args: MapTree<[P, ...Rest], Tensor, TensorSpec> | [P, ...Rest],
  { cuts: givenCuts, mesh, place, passes = [] }: CutOptions,
): CutStep => {
  const isCut = (cut: unknown): boolean =>
    typeof cut === "string" || (Array.isArray(cut) && cut.length > 0 && cut.every((name) => typeof name === "string"));
  if (!Array.isArray(givenCuts) || !givenCuts.every(isCut))
    throw new ArgumentError(
      `cutStages: its cuts are ${describe(givenCuts)}; name tapped values, as in { cuts: ["block-3", ["block-7", "mask"]] }`,
    );
  const names = givenCuts.map((cut) => (typeof cut === "string" ? [cut] : [...(cut as readonly string[])]));
  const cutNames = new Set(names.flat());
  const whole = (params: P, ...rest: Rest): unknown => {
    const own = mapTree(params, (leaf: Tensor) => identity(leaf)) as P;
    const { result, taps } = gatherTaps(
      () => fn(own, ...rest),
      (x, name) => (cutNames.has(name) ? separate(x) : identity(x)),
    );
    const [traced, aux] = Array.isArray(result) ? (result as [Tensor, unknown]) : [result as Tensor, []];
    const loss = scalarLoss("cutStages", traced);
    const cuts = valuesOf(names, taps);
    const leaves = flattenTree<Tensor>(own).leaves;
    // Each stage is differentiated separately, the last stage first: the gradients of its parameters are the stage's
    // own part.
    const outgoingCotangents: Tensor[][] = [inPhase("backward", () => [separate(full([], 1, loss.dtype))])];
    const gradients: Tensor[][] = [];
    for (let stage = names.length; stage >= 0; stage--) {
      const outgoing = stage === names.length ? [loss] : cuts[stage]!.filter(isFloatTensor);
      const incoming = stage === 0 ? [] : cuts[stage - 1]!.filter(isFloatTensor);
      const back = pullBack(outgoing, outgoingCotangents[0]!, [...leaves, ...incoming]);
      gradients.unshift(back.slice(0, leaves.length));
      if (stage > 0) outgoingCotangents.unshift(inPhase("backward", () => back.slice(leaves.length).map(separate)));
    }
    return { loss, aux, cuts, outgoingCotangents, gradients };
  };
  const traced = trace(whole, args as never, { ...(mesh && { mesh }), place });
  const transformed = passes.reduce((graph, pass) => keepDefinitions(graph, pass(graph)), traced.graph);
  const graph = withoutRegions(recomputeRegions(transformed));

  // Outputs are numbered in trees, because value references of a graph would be flattened as records.
  const outputIndex = unflattenTree<{
    readonly loss: number;
    readonly aux: unknown;
    readonly cuts: readonly (readonly number[])[];
    readonly outgoingCotangents: readonly (readonly number[])[];
    readonly gradients: readonly (readonly number[])[];
  }>(
    traced.outputs,
    graph.outputs.map((_, i) => i),
  );
  const refsAt = (outputs: readonly number[]): ValueRef[] => outputs.map((output) => graph.outputs[output]!);
  const aux = flattenTree<number>(outputIndex.aux);
  const params = flattenTree((args as readonly unknown[])[0]);
  const step: StepValues = {
    loss: graph.outputs[outputIndex.loss]!,
    aux: refsAt(aux.leaves),
    cuts: names.map((cut, k) => ({ names: cut, values: refsAt(outputIndex.cuts[k]!) })),
    outgoingCotangents: outputIndex.outgoingCotangents.map(refsAt),
    gradients: outputIndex.gradients.map(refsAt),
    numParams: params.leaves.length,
  };
  const assignment = assignStages(graph, { ...step, back: [...step.gradients, ...step.outgoingCotangents].flat() });
  const stages = buildStages(graph, step, assignment);
  const paths = leafPaths((args as readonly unknown[])[0]);
  return {
    stages,
    shared: paths.flatMap((path, leaf) => {
      const readers = stages.flatMap((stage, s) => (stage.params.includes(leaf) ? [s] : []));
      return readers.length > 1 ? [{ leaf, path, stages: readers }] : [];
    }),
    params: params.structure,
    aux: aux.structure,
  };
};
