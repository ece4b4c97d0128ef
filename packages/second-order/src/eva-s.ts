import {
  add,
  ArgumentError,
  divide,
  flattenTree,
  full,
  type GradientTransformation,
  leafPaths,
  matmul,
  mean,
  multiply,
  resolveSchedule,
  type Schedule,
  sqrt,
  square,
  subtract,
  sum,
  type Tensor,
  unflattenTree,
} from "@skein/tensor-core";
import { type CurvatureFigures, figuresOf, zeroFigures } from "./curvature-figures.ts";
import { asMatrices, isMatrix, restoreShape, noStacks, type StackDims } from "./matrices.ts";
import { checkDamping } from "./options.ts";
import { addSums, checkUpdateSize, zeroSums, sizeFactor, type UpdateSizeOptions } from "./update-size.ts";

export interface EvaSOptions extends UpdateSizeOptions {
  /** Damping γ. Default: 0.03. */
  readonly damping?: Schedule;
  /**
   * Curvature computed from two vectors: the mean row and the mean column of a gradient. `product`: the outer product
   * of these vectors, like the curvature in Eva. `roots`: the square roots of both second moments, `v vᵀ / ‖v‖`.
   * Default: product.
   */
  readonly variant?: "product" | "roots";
  /** Parameters that are stacks of matrices. Each matrix of a stack is treated separately. Default: none. */
  readonly stackDims?: StackDims;
}

/** State of Eva-s: a counter and metrics, but no statistics. */
export interface EvaSState {
  /** Number of updates, i32 scalar. */
  readonly step: Tensor;
  readonly figures: CurvatureFigures;
}

const [rows, columns] = [
  { dims: -1, keepDims: true },
  { dims: -2, keepDims: true },
];

/** Returns the inner product of each pair of matrices, [..., 1, 1]. */
const dotEach = (a: Tensor, b: Tensor): Tensor => sum(multiply(a, b), { dims: [-2, -1], keepDims: true });

/**
 * Eva-s: Shampoo with vectors instead of matrices. A gradient's mean row and mean column replace its second moments:
 * `γV = ∇ − β u vᵀ`, `β = uᵀ∇v / (γ + ‖u‖²‖v‖²)`, or with `roots` `uᵀ∇v / (‖u‖‖v‖(γ + ‖u‖‖v‖))`. Needs no statistics.
 * Gradients of vector parameters are not changed. Each matrix of a stack has separate vectors.
 *
 * The paper specifies neither the two vectors nor the exponent of the curvature. Both variants are consistent with the
 * paper.
 *
 * Cost: no state except counters; about 10 flops per parameter.
 * @example
 * ```ts
 * const optimizer = chain(evaS({ learningRate: 0.1 }), momentum({ learningRate: 0.1 }));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 0.90 2.08 3.08 3.90
 * ```
 * Source: Zhang, Shi and Li 2023 (Eva), ICLR.
 */
export const evaS = ({
  damping = 0.03,
  variant = "product",
  stackDims = noStacks,
  ...size
}: EvaSOptions): GradientTransformation<EvaSState> => {
  checkDamping("evaS", damping);
  checkUpdateSize("evaS", size);
  if (variant !== "product" && variant !== "roots")
    throw new ArgumentError(`evaS: variant is ${String(variant)}; use product or roots`);
  return {
    init: () => ({ step: full([], 0, "i32"), figures: zeroFigures() }),
    update: (gradients, { step }) => {
      const gamma = resolveSchedule(damping, step);
      const { leaves, structure } = flattenTree<Tensor>(gradients);
      const stacks = leafPaths(gradients).map(stackDims);
      let sums = zeroSums();
      const directions = leaves.map((leaf, i) => {
        if (!isMatrix(leaf, stacks[i])) return undefined;
        const weight = asMatrices(leaf, stacks[i]);
        const [input, output] = [mean(weight, rows), mean(weight, columns)];
        const projected = matmul(input, weight, { transposeA: true });
        const inner = dotEach(projected, output);
        const [product, roots] = [
          multiply(dotEach(input, input), dotEach(output, output)),
          sqrt(multiply(dotEach(input, input), dotEach(output, output))),
        ];
        const denominator = variant === "product" ? add(gamma, product) : multiply(roots, add(gamma, roots));
        const scaled = multiply(output, divide(inner, add(denominator, 2 ** -126)));
        const total = dotEach(weight, weight);
        const removed = dotEach(projected, scaled);
        const remaining = subtract(total, removed);
        const remainingSquare = add(
          subtract(remaining, removed),
          multiply(dotEach(input, input), dotEach(scaled, scaled)),
        );
        sums = addSums(sums, {
          inner: divide(sum(remaining), gamma),
          direction: divide(sum(remainingSquare), square(gamma)),
          gradient: sum(total),
        });
        return subtract(weight, multiply(input, scaled));
      });
      const factor = sizeFactor(size, sums, step);
      const scale = divide(factor, gamma);
      return [
        unflattenTree(
          structure,
          leaves.map((leaf, i) =>
            directions[i] === undefined ? leaf : restoreShape(multiply(directions[i], scale), leaf),
          ),
        ),
        { step: add(step, 1), figures: figuresOf(factor, gamma, sums) },
      ];
    },
  };
};
