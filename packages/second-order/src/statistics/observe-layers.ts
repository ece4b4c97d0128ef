import {
  ArgumentError,
  argsort,
  divide,
  flattenTree,
  inPhase,
  type MapTree,
  scope,
  slice,
  square,
  type Tensor,
  type TensorSpec,
  trace,
  type Traced,
  uniform,
  unflattenTree,
} from "@skein/tensor-core";
import { type LayerUse, replay, traceWithin, valueKey, type ValueRef } from "@skein/tensor-core/backend";
import type { Statistics, StatisticsCollector } from "./collect.ts";
import { type AppliedLayer, appliedLayers, type Layer, type ModelLayers } from "./layer.ts";
import { gradientRows, inputRows, type LayerRows } from "./layer-rows.ts";
import type { LayerSide, Statistic } from "./statistic.ts";

/** A function that differentiates a loss once with respect to the parameters. */
type Step<Args extends readonly unknown[], Result> = (...args: Args) => Result;

/**
 * Finds the layers of a model.
 *
 * @param step function that differentiates the loss: `(params, batch) => valueAndGrad(loss)(params, batch)`. Parameters
 *   must be the first argument.
 * @param args specs or arrays of the step's arguments.
 * @example
 * ```ts
 * const loss = (params: { w: Tensor }, x: Tensor) => mean(square(matmul(x, params.w)));
 * const params = { w: NdArray.from([0, 0], [2, 1]) };
 * const { layers } = findLayers(valueAndGrad(loss), [params, NdArray.from([1, 2], [1, 2])] as never);
 * console.log(layers.map(({ path, kind }) => `${path}: ${kind}`)); // ['w: linear']
 * ```
 */
export const findLayers = <Args extends readonly unknown[]>(
  step: Step<Args, unknown>,
  args: MapTree<Args, Tensor, TensorSpec> | Args,
  options: Parameters<typeof trace>[2] = {},
): ModelLayers => {
  const { applied, ...others } = appliedLayers(trace(step, args, options), args[0]);
  return { layers: applied.map(({ layer }) => layer), ...others };
};

/** Statistics to collect, with the layers and samples to use. */
export interface ObserveLayersOptions {
  /** Statistic to compute for each layer. */
  readonly statistic: Statistic;
  /**
   * Whether to collect the statistic of a layer's inputs (`input`) or output gradients (`gradient`). Default: all
   * statistics of all layers.
   */
  readonly wants?: (layer: Layer, side: LayerSide) => boolean;
  /** Number of samples in the step. */
  readonly samples: number;
  /** Number of samples over which the loss is averaged, if the step computes only some of them. Default: `samples`. */
  readonly meanOver?: number;
  /** Number of samples to use, drawn at random in each step, and the random key. Default: all samples. */
  readonly draw?: { readonly count: number; readonly key: Tensor };
  /** Factor by which the loss was multiplied. Default: 1. */
  readonly lossScale?: Tensor;
  readonly collector: StatisticsCollector;
}

/** A statistic that cannot be computed yet, because the step has not computed all required values. */
interface PendingStatistic {
  readonly applied: AppliedLayer;
  readonly side: LayerSide;
  /** Keys of the missing values, for all uses of the layer. */
  readonly missing: Set<string>;
}

const refsOf = (side: LayerSide, { input, output, outputGradient }: LayerUse): ValueRef[] =>
  side === "input" ? [input, output] : [outputGradient];

const rowsOf = ({ layer, uses }: AppliedLayer, side: LayerSide, valueOf: (ref: ValueRef) => Tensor): LayerRows[] =>
  uses.map((use) =>
    side === "input"
      ? inputRows(layer, use, valueOf(use.input), valueOf(use.output))
      : gradientRows(layer, use, valueOf(use.outputGradient)),
  );

const requireSamples = (layer: Layer, rows: readonly LayerRows[], samples: number): void => {
  const odd = rows.find(({ count }) => count % samples !== 0);
  if (odd !== undefined)
    throw new ArgumentError(
      `observeLayers: ${layer.path} has ${odd.count} rows, not divisible by ${samples} samples; give the number of samples of the batch, or leave the layer out`,
    );
};

/**
 * Runs a step that differentiates a loss, and collects layer statistics as early as possible: statistics of inputs
 * during the forward pass, statistics of gradients during the backward pass. Works with any unchanged model, because
 * layers are found in the trace.
 *
 * @param step function as in `findLayers`; must use no tensors except its arguments.
 * @returns the result of the step, and the statistics from the collector.
 * @throws ArgumentError if the statistic needs rows per sample, and the rows of a layer cannot be assigned to samples.
 * @example
 * ```ts
 * const loss = (params: { w: Tensor }, x: Tensor) => mean(square(matmul(x, params.w)));
 * const step = (w: Tensor, x: Tensor) => {
 *   const { statistics } = observeLayers(valueAndGrad(loss), [{ w }, x], {
 *     statistic: meanStatistic, // means of inputs and of output gradients
 *     samples: 2,
 *     collector: ownStatistics(),
 *   });
 *   return statistics["w"]!.input!;
 * };
 * const x = NdArray.from([1, 2, 3, 4], [2, 2]);
 * console.log((await evaluate(step, referenceBackend())(NdArray.from([1, 1], [2, 1]), x)).toNumbers()); // [2, 3]
 * ```
 */
export const observeLayers = <Args extends readonly unknown[], Result>(
  step: Step<Args, Result>,
  args: Args,
  { statistic, wants = () => true, samples, meanOver = samples, draw, lossScale, collector }: ObserveLayersOptions,
): { readonly result: Result; readonly statistics: Statistics } => {
  const traced: Traced = traceWithin(step, args);
  const { applied } = appliedLayers(traced, args[0]);
  const pendingStatistics = applied.flatMap((one): PendingStatistic[] =>
    (["input", "gradient"] as const)
      .filter((side) => statistic[side] !== undefined && wants(one.layer, side))
      .map((side) => ({
        applied: one,
        side,
        missing: new Set(one.uses.flatMap((use) => refsOf(side, use)).map(valueKey)),
      })),
  );
  const chosen = draw && slice(argsort(uniform(draw.key, [samples])), [0], [draw.count]);
  const count = { meanOver, numUsed: draw?.count ?? samples };
  const values = new Map<string, Tensor>();
  const byValue = Map.groupBy(
    pendingStatistics.flatMap((one) => [...one.missing].map((key) => ({ key, one }))),
    ({ key }) => key,
  );
  const gather = ({ applied: one, side }: PendingStatistic): void => {
    const value = inPhase("update", () =>
      scope(`statistics/${one.layer.path}`, () => {
        const all = rowsOf(one, side, (ref) => values.get(valueKey(ref))!);
        if (chosen !== undefined || statistic.isPerSample === true) requireSamples(one.layer, all, samples);
        const rows = chosen === undefined ? all : all.map((each) => each.take(samples, chosen));
        const gathered = statistic[side]!(one.layer, rows, count);
        if (side === "input" || lossScale === undefined) return gathered;
        return divide(gathered, statistic.degree === 1 ? lossScale : square(lossScale));
      }),
    );
    collector.add(one.layer, side, value);
  };
  const outputs = replay(traced.graph, flattenTree<Tensor>(args).leaves, {
    onValue: (ref, value) => {
      const key = valueKey(ref);
      const waiting = byValue.get(key);
      if (waiting === undefined) return;
      values.set(key, value);
      for (const { one } of waiting) {
        one.missing.delete(key);
        if (one.missing.size === 0) gather(one);
      }
    },
  });
  return { result: unflattenTree<Result>(traced.outputs, outputs), statistics: collector.finish() };
};
