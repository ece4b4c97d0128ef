import { add, divide, full, multiply, resolveSchedule, type Schedule, type Tensor } from "@skein/tensor-core";
import { type CurvatureFigures, figuresOf, zeroFigures } from "./curvature-figures.ts";
import type { Preconditioner } from "./preconditioner.ts";
import { checkDamping, checkDecay, requireLayers } from "./options.ts";
import { mapLayers } from "./map-layers.ts";
import { projectOnInputs, dot, subtractRankOne, normSquare } from "./rank-one.ts";
import { initStatistics, mixStatistics, pastWeight } from "./running-mean.ts";
import type { Statistics } from "./statistics/collect.ts";
import type { Layer } from "./statistics/layer.ts";
import { inputMeanStatistic, meanStatistic } from "./statistics/means.ts";
import type { LayerStatistic, Statistic } from "./statistics/statistic.ts";
import { addSums, checkUpdateSize, zeroSums, sizeFactor, type UpdateSizeOptions } from "./update-size.ts";

export interface EvaOptions extends UpdateSizeOptions {
  /** Layers to precondition: see `findLayers`. Gradients of all other weights are not changed. */
  readonly layers: readonly Layer[];
  /** Damping γ, added to the curvature. Default: 0.03. */
  readonly damping?: Schedule;
  /** Weight of the previous value in the vectors' running means, in [0, 1). Default: 0.95. */
  readonly decay?: number;
}

/** State of Eva: two vectors per layer. */
export interface EvaState {
  /** Running means of the two vectors, per layer. */
  readonly vectors: Statistics;
  /** Number of steps that the running means include, i32 scalar. */
  readonly observed: Tensor;
  /** Number of updates, i32 scalar. */
  readonly step: Tensor;
  readonly figures: CurvatureFigures;
}

/**
 * Computes the vector `u`, [outputs], that determines a layer's preconditioned gradient V: `γV = ∇ − ā uᵀ`, with the
 * layer's mean input ā.
 */
type OutputVectorRule = (vectors: LayerStatistic, projected: Tensor, damping: Tensor) => Tensor;

/**
 * Computes `u` for Eva, by the Sherman–Morrison formula for `ā āᵀ ⊗ ḡ ḡᵀ + γI`: `u = β ḡ`, `β = ḡᵀ∇ā / (γ + ‖ā‖²‖ḡ‖²)`.
 * ā and ḡ are the layer's mean input and mean output gradient.
 */
const outputOfBoth: OutputVectorRule = ({ input, gradient }, projected, damping) => {
  const beta = divide(dot(projected, gradient!), add(damping, multiply(normSquare(input!), normSquare(gradient!))));
  return multiply(gradient!, beta);
};

/** Computes `u` for Eva-f, by the Sherman–Morrison formula for `ā āᵀ + γI`: `u = ∇ᵀā / (γ + ‖ā‖²)`. */
const outputOfInputs: OutputVectorRule = ({ input }, projected, damping) =>
  divide(projected, add(damping, normSquare(input!)));

const rankOnePreconditioner = (
  fn: string,
  statistic: Statistic,
  outputOf: OutputVectorRule,
  { layers, damping = 0.03, decay = 0.95, ...size }: EvaOptions,
): Preconditioner<EvaState> => {
  requireLayers(fn, layers);
  checkDamping(fn, damping);
  checkDecay(fn, decay);
  checkUpdateSize(fn, size);
  return {
    statistic,
    layers,
    init: () => ({
      vectors: initStatistics(layers, statistic),
      observed: full([], 0, "i32"),
      step: full([], 0, "i32"),
      figures: zeroFigures(),
    }),
    observe: (state, statistics) => ({
      ...state,
      vectors: mixStatistics(pastWeight(decay, state.observed), state.vectors, statistics as Statistics),
      observed: add(state.observed, 1),
    }),
    update: (gradients, state) => {
      const gamma = resolveSchedule(damping, state.step);
      let sums = zeroSums();
      const directions = mapLayers(layers, gradients, (layer, gradient) => {
        const vectors = state.vectors[layer.path]!;
        const projected = projectOnInputs(gradient, vectors.input!);
        const output = outputOf(vectors, projected, gamma);
        const remaining = subtractRankOne(gradient, { input: vectors.input!, output, projected, damping: gamma });
        sums = addSums(sums, remaining.sums);
        return remaining.direction;
      });
      const factor = sizeFactor(size, sums, state.step);
      // A single factor per entry, because 1/γ alone could exceed the range of f16.
      const scale = divide(factor, gamma);
      const updates = mapLayers(layers, directions, (_, { weight, bias }) => ({
        weight: multiply(weight, scale),
        ...(bias !== undefined && { bias: multiply(bias, scale) }),
      }));
      return [updates, { ...state, step: add(state.step, 1), figures: figuresOf(factor, gamma, sums) }];
    },
  };
};

/**
 * Eva: multiplies the gradient of each layer by the inverse of `ā āᵀ ⊗ ḡ ḡᵀ + γI`. ā and ḡ are running means of the
 * layer's inputs and output gradients. Eva is K-FAC with vectors instead of matrices.
 *
 * `V = (∇ − β ā ḡᵀ) / γ` with `β = ḡᵀ∇ā / (γ + ‖ā‖²‖ḡ‖²)`, then scaled according to `size`. Apply momentum, weight
 * decay and learning rate afterwards.
 *
 * @throws ArgumentError if the list of layers is empty, or an option is out of range.
 * Cost: state of `inputs + outputs` numbers per layer, also sent in each step; about 8 flops per parameter.
 * @example
 * ```ts
 * const loss = (params: { w: Tensor }, x: Tensor, y: Tensor) => mean(square(subtract(matmul(x, params.w), y)));
 * const data = [{ w: NdArray.from([0, 0], [2, 1]) }, NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 2], [2, 1])];
 * const { layers } = findLayers(valueAndGrad(loss), data as never);
 * const optimizer = chain(eva({ layers, learningRate: 0.1 }), momentum({ learningRate: 0.1 }));
 * console.log(layers[0]!.path, optimizer.observe !== undefined); // w true
 * ```
 * Source: Zhang, Shi and Li 2023, ICLR.
 */
export const eva = (options: EvaOptions): Preconditioner<EvaState> =>
  rankOnePreconditioner("eva", meanStatistic, outputOfBoth, options);

/**
 * Eva-f: like `eva`, but with inputs only. Multiplies by the inverse of `ā āᵀ + γI`, which is FOOF with a vector.
 *
 * Cost: state of `inputs` numbers per layer, also sent in each step; about 8 flops per parameter.
 * @example
 * ```ts
 * const loss = (params: { w: Tensor }, x: Tensor, y: Tensor) => mean(square(subtract(matmul(x, params.w), y)));
 * const data = [{ w: NdArray.from([0, 0], [2, 1]) }, NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 2], [2, 1])];
 * const { layers } = findLayers(valueAndGrad(loss), data as never);
 * const optimizer = chain(evaF({ layers, learningRate: 0.1 }), momentum({ learningRate: 0.1 }));
 * console.log(layers[0]!.path, optimizer.observe !== undefined); // w true
 * ```
 * Source: Zhang, Shi and Li 2023, ICLR; Benzing 2022, arXiv 2201.12250, for FOOF.
 */
export const evaF = (options: EvaOptions): Preconditioner<EvaState> =>
  rankOnePreconditioner("evaF", inputMeanStatistic, outputOfInputs, options);
