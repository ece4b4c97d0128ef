import { elementCount } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import type { DeviceFacts, KernelPlan, MatmulRequest, Pass } from "../../kernel.ts";

/**
 * One product `y[batch, m, n] = Σₖ a · b`, with all properties that a variant may specialize on. Sums are always f32.
 */
export interface Product extends MatmulRequest {
  readonly resultDtype: "f32" | "f16";
}

/**
 * Order of the additions of a product.
 *
 * - `in order`: one chain of f32 multiply-adds along the inner dimension.
 * - `in pieces`: one such chain along each piece of the inner dimension; the sums of the pieces are added in order.
 * - `by matrices`: the order of the device's matrix units.
 */
export type SumOrder = "in order" | "in pieces" | "by matrices";

/** An algorithm for a product. Variants with the same order of sums give bitwise identical results. */
export interface MatmulVariant {
  /** Unique name. Stored in measured models, so its meaning must never change. */
  readonly name: string;
  /**
   * Order of the additions in the variant's sums. `by rule` means the order that the device's rule chooses for each
   * product.
   */
  readonly sums: SumOrder | "by rule";
  /** Whether the device can run this variant, and the shape is suitable for it. */
  readonly supports: (product: Product, facts: DeviceFacts) => boolean;
  readonly plan: (product: Product, facts: DeviceFacts) => KernelPlan;
}

export const productOf = ({ inputs, outputs, params }: KernelNode<OperatorParams["matmul"]>): Product => {
  const [{ dtype, shape }] = inputs as [(typeof inputs)[number]];
  const { shape: result, dtype: resultDtype } = outputs[0]!;
  const transposeA = params.transposeA;
  return {
    batch: elementCount(result.slice(0, -2)),
    rows: result.at(-2)!,
    columns: result.at(-1)!,
    inner: shape.at(transposeA ? -2 : -1)!,
    transposeA,
    transposeB: params.transposeB,
    dtype: dtype as "f32" | "f16",
    resultDtype: resultDtype as "f32" | "f16",
  };
};

/** Returns the layout of the operands: `NN`, `NT`, `TN` or `TT` (N: not transposed, T: transposed). */
export const layoutOf = ({ transposeA, transposeB }: MatmulRequest): string =>
  `${transposeA ? "T" : "N"}${transposeB ? "T" : "N"}`;

export const flopsOf = ({ batch, rows, columns, inner }: MatmulRequest): number => 2 * batch * rows * columns * inner;

export const featuresOf = ({ dtype, resultDtype }: Product): Pick<Pass, "features"> =>
  dtype === "f16" || resultDtype === "f16" ? { features: ["f16"] } : {};

export const range = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);
