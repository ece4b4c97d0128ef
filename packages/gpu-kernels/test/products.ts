import { evaluate, matmul, NdArray, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { WebGpuBackend } from "../src/index.ts";
import type { Product } from "../src/kernels/matmul/product.ts";
import { matmulVariant } from "../src/kernels/matmul/variants.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

export const layouts = [
  [false, false],
  [false, true],
  [true, false],
  [true, true],
] as const;

export const productOf = (rows: number, columns: number, inner: number, rest: Partial<Product> = {}): Product => ({
  batch: 1,
  rows,
  columns,
  inner,
  transposeA: false,
  transposeB: false,
  dtype: "f32",
  resultDtype: "f32",
  ...rest,
});

/** Sizes that are not multiples of a vector or tile, with a batch. */
export const odd = { batch: 2, rows: 71, columns: 45, inner: 37 };
export const even = { batch: 2, rows: 68, columns: 132, inner: 44 };

/**
 * Computes a product in f64, and the sum of magnitudes of its terms, which bounds the error of f32 sums in any order.
 */
const exact = (
  a: NdArray,
  b: NdArray,
  { batch, rows, columns, inner, transposeA, transposeB }: Product,
): { y: Float64Array; magnitude: Float64Array } => {
  const [x, w] = [Float64Array.from(a.toNumbers()), Float64Array.from(b.toNumbers())];
  const [y, magnitude] = [new Float64Array(batch * rows * columns), new Float64Array(batch * rows * columns)];
  let at = 0;
  for (let s = 0; s < batch; s++)
    for (let m = 0; m < rows; m++)
      for (let n = 0; n < columns; n++, at++)
        for (let k = 0; k < inner; k++) {
          const term =
            x[s * rows * inner + (transposeA ? k * rows + m : m * inner + k)]! *
            w[s * inner * columns + (transposeB ? n * inner + k : k * columns + n)]!;
          y[at]! += term;
          magnitude[at]! += Math.abs(term);
        }
  return { y, magnitude };
};

/**
 * Returns normal numbers, every seventh of which is twenty times as large, and every fifth of which is the negative of
 * the previous number.
 */
const adversarial = (shape: readonly number[], dtype: "f32" | "f16", seed: number): NdArray => {
  const values = Float32Array.from(normalArray(shape, seed).toNumbers(), (value, i) =>
    i % 7 === 3 ? 20 * value : value,
  );
  for (let i = 1; i < values.length; i += 5) values[i] = -values[i - 1]!;
  return NdArray.from(values, shape, dtype);
};

export const operands = ({
  batch,
  rows,
  columns,
  inner,
  transposeA,
  transposeB,
  dtype,
}: Product): readonly [NdArray, NdArray] => [
  adversarial([batch, ...(transposeA ? [inner, rows] : [rows, inner])], dtype, 1),
  adversarial([batch, ...(transposeB ? [columns, inner] : [inner, columns])], dtype, 2),
];

/** A backend on which each product runs the variant that a test has chosen. */
export class ForcedProducts {
  private forced = "naive";
  readonly backend: WebGpuBackend;

  private constructor(backend: WebGpuBackend) {
    this.backend = backend;
  }

  static async open(): Promise<ForcedProducts> {
    const products: ForcedProducts = new ForcedProducts(
      await openBackend({ choices: { matmulVariant: () => products.forced } }),
    );
    return products;
  }

  async run(name: string, product: Product, [a, b]: readonly [NdArray, NdArray]): Promise<NdArray> {
    this.forced = name;
    const { transposeA, transposeB, resultDtype, dtype } = product;
    const options = { transposeA, transposeB, ...(dtype === "f16" && { resultDtype }) };
    return (await evaluate((x: Tensor, y: Tensor) => matmul(x, y, options), this.backend)(a, b)) as NdArray;
  }

  /**
   * Compares the product of a variant with f64, within the error bound of f32 sums in any order. Skips a variant that
   * this device cannot run.
   */
  async check(name: string, product: Product): Promise<void> {
    if (!matmulVariant(name)!.supports(product, this.backend.facts)) return;
    const [a, b] = operands(product);
    const { y, magnitude } = exact(a, b, product);
    const actual = (await this.run(name, product, [a, b])).toNumbers();
    const rounding = product.resultDtype === "f16" ? 2 ** -11 : 0;
    for (const [i, expected] of y.entries()) {
      const bound =
        (product.inner + 2) * 2 ** -24 * magnitude[i]! * 1.01 +
        rounding * Math.abs(expected) * 1.01 +
        (rounding > 0 ? 2 ** -25 : 0);
      if (!(Math.abs(actual[i]! - expected) <= bound))
        throw new Error(`${name} ${JSON.stringify(product)}: element ${i} is ${actual[i]}, not ${expected} ± ${bound}`);
    }
  }
}

/** Names of tiles that share their implementation with `register-64x64-8x8`. */
export const largeTiles: readonly string[] = [
  "register-64x64-4x4",
  "register-128x64-8x8",
  "register-64x128-8x8",
  "register-128x128-8x8",
];

/**
 * Tests variants with all combinations of transposed operands. Software adapters take seconds to compile large tiles.
 */
export const describeVariants = (names: readonly string[]): void => {
  describe.skipIf(!hasAdapter)("products", () => {
    let products: ForcedProducts;
    beforeAll(async () => {
      products = await ForcedProducts.open();
    });
    afterAll(() => products.backend.close());

    test.each(names)("%s is correct for all layouts, odd sizes and batches", async (name) => {
      for (const [transposeA, transposeB] of layouts) {
        const shape = transposeA === transposeB ? odd : even;
        await products.check(
          name,
          productOf(shape.rows, shape.columns, shape.inner, { batch: shape.batch, transposeA, transposeB }),
        );
      }
    });
  });
};
