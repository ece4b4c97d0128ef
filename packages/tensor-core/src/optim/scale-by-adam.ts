import { add, cast, divide, full, multiply, sqrt, square, tanh, zerosLike } from "../functions/elementwise.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkNumber, checkOptions } from "../options.ts";
import { zipTrees } from "../tree.ts";
import type { GradientTransformation, TensorTree } from "./transformation.ts";

export interface AdamState {
  /** Number of completed updates, i32 scalar. */
  readonly step: Tensor;
  /** Exponential moving average of the gradient: a tree with the structure of the parameters. */
  readonly mean: TensorTree;
  /** Exponential moving average of the squared gradient: a tree with the structure of the parameters. */
  readonly square: TensorTree;
}

export interface AdamOptions {
  /** Decay factor of `mean`. Default: 0.9. */
  readonly beta1?: number;
  /** Decay factor of `square`. Default: 0.999. */
  readonly beta2?: number;
  /** Constant ε added to the denominator. Default: 1e-8. */
  readonly epsilon?: number;
}

/**
 * Computes the bias correction `1 − decay^step` as `2y' / (1 + y')` with `y' = tanh(−step·ln(decay)/2)`. In the first
 * steps, when `decay^step` is close to 1, the direct subtraction in f32 would lose four of seven digits.
 */
const biasCorrection = (decay: number, step: Tensor): Tensor => {
  if (decay === 0) return full([], 1);
  const half = tanh(multiply(cast(step, "f32"), -Math.log(decay) / 2));
  return divide(multiply(half, 2), add(half, 1));
};

/**
 * Computes the update direction of Adam: `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`; the update is `m̂ / (√v̂ + ε)` with
 * `m̂ = m/(1−β₁ᵗ)`, `v̂ = v/(1−β₂ᵗ)` for gradient g and step number t, from 1.
 *
 * Memory: two f32 values of state per parameter.
 *
 * @example
 * ```ts
 * const optimizer = chain(scaleByAdam(), scaleByLearningRate(0.1));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 * Source: Kingma and Ba 2015, arXiv 1412.6980, Algorithm 1; ε outside the root of v̂ as in PyTorch.
 */
export const scaleByAdam = (options: AdamOptions = {}): GradientTransformation<AdamState> => {
  const {
    beta1 = 0.9,
    beta2 = 0.999,
    epsilon = 1e-8,
  } = checkOptions("scaleByAdam()", options, { beta1: true, beta2: true, epsilon: true });
  checkNumber("scaleByAdam", "beta1", beta1, { from: 0, below: 1, usual: 0.9 });
  checkNumber("scaleByAdam", "beta2", beta2, { from: 0, below: 1, usual: 0.999 });
  checkNumber("scaleByAdam", "epsilon", epsilon, { from: 0, usual: 1e-8 });
  return {
    init: (params) => {
      const zeros = (): TensorTree => zipTrees<unknown, TensorTree>((param: Tensor) => zerosLike(param), params);
      return { step: full([], 0, "i32"), mean: zeros(), square: zeros() };
    },
    update: (updates, state) => {
      const step = add(state.step, 1);
      const mean = zipTrees(
        (m: Tensor, g: Tensor) => add(multiply(m, beta1), multiply(g, 1 - beta1)),
        state.mean,
        updates,
      );
      const squares = zipTrees(
        (v: Tensor, g: Tensor) => add(multiply(v, beta2), multiply(square(g), 1 - beta2)),
        state.square,
        updates,
      );
      // Precompute reciprocals, so that each element needs a multiplication instead of a division.
      const meanFactor = divide(1, biasCorrection(beta1, step));
      const squareFactor = divide(1, biasCorrection(beta2, step));
      const direction = zipTrees(
        (_: Tensor, m: Tensor, v: Tensor) =>
          divide(multiply(m, meanFactor), add(sqrt(multiply(v, squareFactor)), epsilon)),
        updates,
        mean,
        squares,
      );
      return [direction, { step, mean, square: squares }];
    },
  };
};
