import { describe } from "../../describe.ts";
import { didYouMean } from "../../did-you-mean.ts";
import { isFloat } from "../../dtype.ts";
import { ArgumentError } from "../../errors.ts";
import { pullBack } from "../../autodiff/pull-back.ts";
import { gatherTaps } from "../../autodiff/tap.ts";
import { scalarLoss } from "../../autodiff/vjp.ts";
import { full, identity } from "../../functions/elementwise.ts";
import { optimizationBarrier } from "../../functions/optimization-barrier.ts";
import { inPhase, type Mesh, type MeshCoordinates } from "../../graph/emit.ts";
import { type Graph, keepDefinitions, type ValueRef } from "../../graph/graph.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { trace } from "../../tracing/trace.ts";
import { recomputeRegions, withoutRegions } from "../../passes/recompute/recompute-regions.ts";
import type { TensorSpec } from "../../shape.ts";
import { flattenTree, leafPaths, type MapTree, mapTree, unflattenTree } from "../../tree.ts";
import { assignStages } from "./assign-stages.ts";
import { buildStages, type StepValues } from "./build-stages.ts";
import type { CutStep } from "./stage.ts";

/** Options of `cutStages`. */
export interface CutOptions {
  /**
   * Cuts of the step, in the order of the forward pass. Each cut is the name of a value recorded by `tap`, or the names
   * of all values that a stage passes to the next stage. n cuts make n + 1 stages.
   */
  readonly cuts: readonly (string | readonly string[])[];
  /** Number of ranks along each mesh axis, as in `trace`. `place`: mesh coordinates of the traced rank. */
  readonly mesh?: Mesh;
  readonly place?: MeshCoordinates;
  /**
   * Graph passes applied to the whole step before the step is cut, such as `mixedPrecision` or `rewriteSaved`. Default:
   * none.
   */
  readonly passes?: readonly ((graph: Graph) => Graph)[];
}

/**
 * Looks up the values of each cut by name. Throws ArgumentError if no `tap` call uses a name, or a name is in two cuts.
 */
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

/** Returns the value as a separate node, which passes do not merge with other nodes. */
const separate = (x: Tensor): Tensor => optimizationBarrier(x)[0]!;

/**
 * Cuts a step into stages at values that its loss function names by `tap`: a forward and a backward graph per stage,
 * for pipelines of ranks, micro-batches, or parts of a model on different devices. All stages together compute the same
 * results as `valueAndGrad`, with the same nodes. Gradients are bitwise identical to `valueAndGrad`, with one
 * exception: if several stages share a parameter, and the first of these stages reads the parameter more than once, its
 * gradient is summed stage by stage. With `mixedPrecision`, a product may be f16 in the step and f32 in a stage, or the
 * reverse, because a cotangent at a cut is both a stage result and a product operand.
 *
 * Each node belongs to the first stage that needs the node. Nodes that depend on parameters alone, or on further
 * arguments alone (casts, masks, keys, constants), are computed in each stage that reads these nodes. Each stage
 * receives the parameters and arguments that it reads. An auxiliary result is computed in the stage that has its
 * operands. Passes are applied to the step before it is cut. Then `checkpoint` regions are expanded, so recomputed
 * nodes are part of the backward graphs. A region must not span a cut.
 *
 * A backward graph receives each forward value once, and does not receive values that are rearrangements of other
 * values. `Stage.kept` lists the received values.
 *
 * @param fn Function of parameters and further arguments that returns the loss, or `[loss, aux]`, as for
 * `valueAndGradWithAux`.
 * @param args Arrays or specs to trace with: the parameters, then the further arguments.
 * @throws ArgumentError if no `tap` call uses a name, or the cuts do not separate the stages. The message names the
 * value that is read across the cut.
 * Cost: O(stages · (nodes + edges)).
 * @example
 * ```ts
 * const loss = ({ w }: { w: Tensor }, x: Tensor) => {
 *   const hidden = tap("hidden", multiply(x, w));
 *   return sum(square(hidden));
 * };
 * const spec = { dtype: "f32", shape: [2] } as const;
 * console.log(cutStages(loss, [{ w: spec }, spec], { cuts: ["hidden"] }).stages.length); // 2
 * ```
 * Source: the stages of GPipe, Huang et al. 2018, arXiv:1811.06965.
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
    // Differentiate each stage separately, from the last stage to the first. The result is the stage's contribution to
    // the gradients of its parameters.
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

  // Build trees of output indices: value references are records, which tree functions would flatten.
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
