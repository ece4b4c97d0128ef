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
import { type CurvatureFigures, figuresOf, noFigures } from "./curvature-figures.ts";
import { asMatrices, isMatrix, likeBefore, noStacks, type StackDims } from "./matrices.ts";
import { checkDamping } from "./options.ts";
import { addSums, checkUpdateSize, noSums, sizeFactor, type UpdateSizeOptions } from "./update-size.ts";

export interface EvaSOptions extends UpdateSizeOptions {
  /** γ. Default: 0.03. */
  readonly damping?: Schedule;
  /**
   * What the means of a gradient's rows and columns stand for: `product` takes their outer product as the curvature, as
   * Eva does with those of layers; `roots` the square roots of both, `v vᵀ / ‖v‖`. Default: product.
   */
  readonly variant?: "product" | "roots";
  /** Which parameters are stacks, whose matrices are treated one by one. Default: none. */
  readonly stackDims?: StackDims;
}

/** What Eva-s keeps: no statistics, only counts and figures. */
export interface EvaSState {
  /** Updates made, i32 scalar. */
  readonly step: Tensor;
  readonly figures: CurvatureFigures;
}

const [rows, columns] = [
  { dims: -1, keepDims: true },
  { dims: -2, keepDims: true },
];

/** Inner product of each two matrices, [..., 1, 1]. */
const dotEach = (a: Tensor, b: Tensor): Tensor => sum(multiply(a, b), { dims: [-2, -1], keepDims: true });

/**
 * Eva-s: Shampoo with vectors. The mean of a gradient's rows and that of its columns take the place of its second
 * moments: `γV = ∇ − β u vᵀ`, `β = uᵀ∇v / (γ + ‖u‖²‖v‖²)`, or with `roots` `uᵀ∇v / (‖u‖‖v‖(γ + ‖u‖‖v‖))`. It asks for
 * no statistics. Vectors among the parameters keep their gradients, matrices of a stack have vectors of their own.
 *
 * The paper leaves the choice of vectors and exponent open; both variants are what its recipe allows.
 *
 * Cost: no state but counters; about 10 flops per parameter.
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
    init: () => ({ step: full([], 0, "i32"), figures: noFigures() }),
    update: (gradients, { step }) => {
      const gamma = resolveSchedule(damping, step);
      const { leaves, structure } = flattenTree<Tensor>(gradients);
      const stacks = leafPaths(gradients).map(stackDims);
      let sums = noSums();
      const directions = leaves.map((leaf, i) => {
        if (!isMatrix(leaf, stacks[i])) return undefined;
        const weight = asMatrices(leaf, stacks[i]);
        const [input, output] = [mean(weight, rows), mean(weight, columns)];
        const against = matmul(input, weight, { transposeA: true });
        const inner = dotEach(against, output);
        const [product, roots] = [
          multiply(dotEach(input, input), dotEach(output, output)),
          sqrt(multiply(dotEach(input, input), dotEach(output, output))),
        ];
        const denominator = variant === "product" ? add(gamma, product) : multiply(roots, add(gamma, roots));
        const scaled = multiply(output, divide(inner, add(denominator, 2 ** -126)));
        const total = dotEach(weight, weight);
        const taken = dotEach(against, scaled);
        const left = subtract(total, taken);
        const leftSquare = add(subtract(left, taken), multiply(dotEach(input, input), dotEach(scaled, scaled)));
        sums = addSums(sums, {
          inner: divide(sum(left), gamma),
          direction: divide(sum(leftSquare), square(gamma)),
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
            directions[i] === undefined ? leaf : likeBefore(multiply(directions[i], scale), leaf),
          ),
        ),
        { step: add(step, 1), figures: figuresOf(factor, gamma, sums) },
      ];
    },
  };
};
