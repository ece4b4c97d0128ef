import {
  add,
  ArgumentError,
  divide,
  flattenTree,
  full,
  type GradientTransformation,
  mean,
  multiply,
  resolveSchedule,
  type Schedule,
  sqrt,
  type Tensor,
  unflattenTree,
} from "@skein/tensor-core";
import { type CurvatureFigures, figuresOf, noFigures } from "./curvature-figures.ts";
import { asMatrix, isMatrix, likeBefore } from "./matrices.ts";
import { checkDamping } from "./options.ts";
import { againstInputs, dot, lessRankOne, normSquare } from "./rank-one.ts";
import { addSums, checkUpdateSize, noSums, sizeFactor, type UpdateSizeOptions } from "./update-size.ts";

export interface EvaSOptions extends UpdateSizeOptions {
  /** γ. Default: 0.03. */
  readonly damping?: Schedule;
  /**
   * What the means of a gradient's rows and columns stand for: `product` takes their outer product as the curvature, as
   * Eva does with those of layers; `roots` the square roots of both, `v vᵀ / ‖v‖`. Default: product.
   */
  readonly variant?: "product" | "roots";
}

/** What Eva-s keeps: no statistics, only counts and figures. */
export interface EvaSState {
  /** Updates made, i32 scalar. */
  readonly step: Tensor;
  readonly figures: CurvatureFigures;
}

/**
 * Eva-s: Shampoo with vectors. The mean of a gradient's rows and that of its columns take the place of its second
 * moments: `γV = ∇ − β u vᵀ`, `β = uᵀ∇v / (γ + ‖u‖²‖v‖²)`, or with `roots` `uᵀ∇v / (‖u‖‖v‖(γ + ‖u‖‖v‖))`. It asks for
 * no statistics. Vectors among the parameters keep their gradients.
 *
 * The paper leaves the choice of vectors and exponent open; both variants are what its recipe allows.
 *
 * Cost: no state but counters; about 10 flops per parameter.
 * Source: Zhang, Shi and Li 2023 (Eva), ICLR.
 */
export const evaS = ({
  damping = 0.03,
  variant = "product",
  ...size
}: EvaSOptions): GradientTransformation<EvaSState> => {
  checkDamping("evaS", damping);
  checkUpdateSize("evaS", size);
  if (variant !== "product" && variant !== "roots")
    throw new ArgumentError(`evaS: variant is ${String(variant)}; use product or roots`);
  return {
    init: () => ({ step: full([], 0, "i32"), figures: noFigures() }),
    update: (gradients, { step }) => {
      const gamma = resolveSchedule(damping, step);
      const { leaves, structure } = flattenTree<Tensor>(gradients);
      let sums = noSums();
      const directions = leaves.map((leaf) => {
        if (!isMatrix(leaf)) return undefined;
        const weight = asMatrix(leaf);
        const [input, output] = [mean(weight, { dims: 1 }), mean(weight, { dims: 0 })];
        const against = againstInputs({ weight }, input);
        const inner = dot(against, output);
        const [square, roots] = [
          multiply(normSquare(input), normSquare(output)),
          sqrt(multiply(normSquare(input), normSquare(output))),
        ];
        const denominator = variant === "product" ? add(gamma, square) : multiply(roots, add(gamma, roots));
        const beta = divide(inner, add(denominator, 2 ** -126));
        const left = lessRankOne({ weight }, { input, output: multiply(output, beta), against, damping: gamma });
        sums = addSums(sums, left.sums);
        return left.direction.weight;
      });
      const factor = sizeFactor(size, sums, step);
      const scale = divide(factor, gamma);
      return [
        unflattenTree(
          structure,
          leaves.map((leaf, i) =>
            directions[i] === undefined ? leaf : likeBefore(multiply(directions[i], scale), leaf),
          ),
        ),
        { step: add(step, 1), figures: figuresOf(factor, gamma, sums) },
      ];
    },
  };
};
