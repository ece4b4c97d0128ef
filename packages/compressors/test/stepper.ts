import {
  axisIndex,
  type CollectiveOptions,
  elementCount,
  type Graph,
  leafPaths,
  type Tensor,
  type TensorSpec,
  trace,
  type TreeStructure,
  unflattenTree,
} from "@skein/tensor-core";
import { eliminateCommonSubexpressions, interpretWorld, type ReferenceArray } from "@skein/tensor-core/backend";
import type { AggregateContext, Aggregated, Aggregator, Bucket } from "../src/index.ts";
import { raggedNodes, raggedSent } from "./collective-bytes.ts";
import { type Axes, groupsOf, meshOf, singlePrecision } from "./world.ts";

/** Result of a step, for each rank. */
export interface Stepped {
  readonly mean: readonly Float64Array[];
  readonly sent: readonly Float64Array[];
  /** Leaves of the state, in flattening order. */
  readonly state: readonly (readonly ReferenceArray[])[];
}

/** Runs steps of one aggregator on one bucket in a world. The step is traced one time and interpreted in f32. */
export interface Stepper {
  readonly graph: Graph;
  /** Structure and specs of the state. */
  readonly before: { readonly structure: TreeStructure; readonly specs: readonly TensorSpec[] };
  readonly after: { readonly structure: TreeStructure; readonly specs: readonly TensorSpec[] };
  /** Paths of the state's leaves. */
  readonly paths: readonly string[];
  init(): ReferenceArray[][];
  /** Bytes of ragged collectives that a rank sends in a first step, averaged over ranks. */
  raggedBytes(gradients: readonly ArrayLike<number>[], seed?: number): number;
  /**
   * Runs a step.
   *
   * @param gradients one gradient per rank.
   * @param seed seed of the step's random key.
   * @param number step number.
   */
  step(
    gradients: readonly ArrayLike<number>[],
    state: readonly (readonly ReferenceArray[])[],
    seed?: number,
    number?: number,
  ): Stepped;
}

export interface StepperOptions {
  readonly axes?: Axes | undefined;
  /** Whether to pass a random key and the rank to the aggregator. */
  readonly keyed: boolean;
  /** Whether to run `begin` and `finish` instead of `aggregate`. */
  readonly inHalves?: boolean;
  /** Options to pass to every collective. */
  readonly collective?: CollectiveOptions;
}

const specsOf = ({ nodes, outputs }: Graph): TensorSpec[] =>
  outputs.map(({ node, output }) => nodes[node]!.specs[output]!);

export const stepperOf = (
  aggregator: Aggregator,
  bucket: Bucket,
  numRanks: number,
  options: StepperOptions,
): Stepper => {
  const mesh = meshOf(numRanks, options.axes);
  const groups = groupsOf(numRanks, options.axes);
  const initial = trace(() => aggregator.init(bucket), [], { mesh });
  const before = { structure: initial.outputs, specs: specsOf(initial.graph) };
  const state = unflattenTree<unknown>(before.structure, before.specs);

  const aggregate = (gradient: Tensor, own: unknown, context: AggregateContext): Aggregated<unknown> => {
    if (options.inHalves !== true) return aggregator.aggregate(gradient, own, bucket, context);
    const { pending, sent, state: next } = aggregator.halves!.begin(gradient, own, bucket, context);
    return { mean: aggregator.halves!.finish(pending, bucket, context), sent, state: next };
  };
  const key: TensorSpec = { dtype: "u32", shape: [2] };
  const number: TensorSpec = { dtype: "u32", shape: [] };
  const { graph, outputs } = trace(
    (gradient: Tensor, own: unknown, keyOfStep: Tensor, step: Tensor) => {
      const { keyed, collective } = options;
      const context = {
        axis: "data",
        step,
        ...(collective && { collective }),
        ...(keyed && { key: keyOfStep, rank: axisIndex("data") }),
      };
      const { mean, sent, state: next } = aggregate(gradient, own, context);
      return [mean, sent, next] as const;
    },
    [{ dtype: "f32", shape: bucket.shape }, state, key, number] as never,
    { mesh },
  );
  const [, , structure] = (outputs as { list: readonly TreeStructure[] }).list;
  const after = { structure: structure!, specs: specsOf(graph).slice(2) };

  const init = (): ReferenceArray[][] =>
    interpretWorld(
      initial.graph,
      Array.from({ length: numRanks }, () => []),
      groups,
      singlePrecision,
    );
  const run = (
    of: Graph,
    gradients: readonly ArrayLike<number>[],
    states: readonly (readonly ReferenceArray[])[],
    seed: number,
    stepNumber: number,
  ): ReferenceArray[][] =>
    interpretWorld(
      of,
      gradients.map((gradient, rank) => [
        { spec: bucket, data: Float64Array.from(gradient, Math.fround) },
        ...states[rank]!,
        { spec: key, data: Float64Array.of(seed, stepNumber) },
        { spec: number, data: Float64Array.of(stepNumber) },
      ]),
      groups,
      singlePrecision,
    );
  // As in a run, common subexpressions are computed once.
  const lean = eliminateCommonSubexpressions(graph);

  return {
    graph,
    before,
    after,
    paths: leafPaths(unflattenTree<unknown>(after.structure, after.specs)),
    init,
    raggedBytes: (gradients, seed = 0) => {
      const nodes = raggedNodes(lean);
      const rows = run({ ...lean, outputs: nodes.map(({ inputs }) => inputs[1]!) }, gradients, init(), seed, 0);
      const sent = rows.flatMap((counts, rank) =>
        nodes.map((node, i) => raggedSent(lean, node, counts[i]!.data, rank)),
      );
      return sent.reduce((sum, bytes) => sum + bytes, 0) / numRanks;
    },
    step: (gradients, states, seed = 0, stepNumber = 0) => {
      const results = run(lean, gradients, states, seed, stepNumber);
      return {
        mean: results.map(([mean]) => mean!.data),
        sent: results.map(([, sent]) => sent!.data),
        state: results.map(([, , ...leaves]) => leaves),
      };
    },
  };
};

/** Number of elements of an aggregator's state on one rank. */
export const stateElements = ({ before }: Stepper): number =>
  before.specs.reduce((count, { shape }) => count + elementCount(shape), 0);
