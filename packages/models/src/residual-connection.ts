// Shapes: B batch, T positions, D width.
import { add, scope, type Tensor } from "@skein/tensor-core";

/**
 * Output of a branch or block, followed by additional results, such as a new state. Most branches have no additional
 * results.
 */
export type Outputs<Further> = readonly [y_BTD: Tensor, ...further: Further[]];

/** Residual connection: applies a branch and its norm to the residual stream x, [B, T, D], and adds the output. */
export type Connection = <Further>(
  x: Tensor,
  parts: {
    readonly name: string;
    norm(x: Tensor): Tensor;
    branch(x: Tensor): Outputs<Further>;
    drop(y: Tensor): Tensor;
  },
) => Outputs<Further>;

/** Normalizes the input of the branch: x + branch(norm(x)), as in GPT-2. */
export const preNorm: Connection = (x, { name, norm, branch, drop }) =>
  scope(name, () => {
    const [y, ...further] = branch(norm(x));
    return [add(x, drop(y)), ...further];
  });

/**
 * Variant of `preNorm` in which the name scope of the branch contains only norm and branch, not dropout and the
 * residual sum.
 */
export const scopedPreNorm: Connection = (x, { name, norm, branch, drop }) => {
  const [y, ...further] = scope(name, () => branch(norm(x)));
  return [add(x, drop(y)), ...further];
};

/** Normalizes the sum: norm(x + branch(x)), as in BERT. */
export const postNorm: Connection = (x, { name, norm, branch, drop }) =>
  scope(name, () => {
    const [y, ...further] = branch(x);
    return [norm(add(x, drop(y))), ...further];
  });
