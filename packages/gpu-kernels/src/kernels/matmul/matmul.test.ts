import { minimalDevice } from "../../minimal-device.ts";
import { NdArray } from "@skein/tensor-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeviceFacts } from "../../kernel.ts";
import { hasAdapter } from "../../../test/gpu.ts";
import {
  describeVariants,
  even,
  ForcedProducts,
  largeTiles,
  layouts,
  odd,
  operands,
  productOf,
} from "../../../test/products.ts";
import { chooseVariant, staticChoice } from "./choose.ts";
import { matmulVariant, matmulVariants, supportedVariants } from "./variants.ts";

describe("plans", () => {
  const products = layouts.flatMap(([transposeA, transposeB]) =>
    [
      [1, 1, 1],
      [1, 1000, 777],
      [33, 65, 2049],
      [64, 64, 4096],
      [1000, 1000, 1000],
    ].map(([m, n, k]) => productOf(m!, n!, k!, { batch: 3, transposeA, transposeB })),
  );

  test("of every variant stay within WebGPU's default limits, and need no feature", () => {
    for (const product of products) {
      for (const variant of supportedVariants(product, minimalDevice)) {
        for (const { code, workgroupSize, groups, bindings, features, label } of variant.plan(product, minimalDevice)
          .passes) {
          expect(workgroupSize, label).toBeLessThanOrEqual(256);
          expect(groups, label).toBeGreaterThan(0);
          expect(bindings.length, label).toBeLessThanOrEqual(8);
          expect(features ?? [], label).toEqual([]);
          const bytes = [...code.matchAll(/var<workgroup> \w+: array<(vec4<f32>|f32), (\d+)>/g)].map(
            ([, type, count]) => Number(count) * (type === "f32" ? 4 : 16),
          );
          expect(bytes.length, label).toBe([...code.matchAll(/var<workgroup>/g)].length);
          expect(
            bytes.reduce((sum, size) => sum + size, 0),
            label,
          ).toBeLessThanOrEqual(16384);
        }
      }
    }
  });

  test("have scratch for all scratch bindings", () => {
    for (const product of products) {
      for (const variant of supportedVariants(product, minimalDevice)) {
        const { passes, scratch = [] } = variant.plan(product, minimalDevice);
        for (const { bindings } of passes)
          for (const { source } of bindings)
            if ("scratch" in source) expect(scratch[source.scratch]).toBeGreaterThan(0);
      }
    }
  });

  test("do not contain sizes in the text, if their remainders agree", () => {
    const code = (m: number, n: number, k: number): string[] =>
      matmulVariant("register-64x64-8x8")!
        .plan(productOf(m, n, k), minimalDevice)
        .passes.map((pass) => pass.code);
    expect(code(64, 128, 256)).toEqual(code(132, 260, 512));
    expect(code(64, 128, 256)).not.toEqual(code(64, 129, 256));
  });

  test("have unique names", () => {
    expect(new Set(matmulVariants.map(({ name }) => name)).size).toBe(matmulVariants.length);
  });

  test("the largest tile runs at default limits, half precision needs f16, matrices need the adapter's shapes", () => {
    const product = productOf(512, 512, 512);
    expect(matmulVariant("register-128x128-8x8")!.supports(product, minimalDevice)).toBe(true);
    expect(
      matmulVariant("register-128x128-8x8")!.supports(product, { ...minimalDevice, maxWorkgroupBytes: 16383 }),
    ).toBe(false);
    expect(matmulVariant("subgroup-8x4")!.supports(product, minimalDevice)).toBe(false);
    const matrices: DeviceFacts = {
      ...minimalDevice,
      f16: true,
      subgroups: true,
      minSubgroupSize: 32,
      maxSubgroupSize: 32,
      maxWorkgroupBytes: 32768,
      subgroupMatrices: [{ operands: "f16", result: "f32", rows: 16, columns: 16, inner: 16 }],
    };
    const half = { ...product, dtype: "f16" } as const;
    expect(staticChoice(half, matrices).name).toBe("subgroup-matrix-64x64");
    expect(staticChoice(product, matrices).name).not.toBe("subgroup-matrix-64x64");
    expect(staticChoice(half, { ...matrices, maxSubgroupSize: 64 }).name).not.toBe("subgroup-matrix-64x64");
    expect(
      staticChoice(half, {
        ...matrices,
        subgroupMatrices: [{ operands: "f16", result: "f16", rows: 16, columns: 16, inner: 16 }],
      }).name,
    ).not.toBe("subgroup-matrix-64x64");
  });
});

describe("choice", () => {
  test.each([
    [4096, 4096, 4096, "register-128x128-8x8"],
    [1024, 1024, 1024, "register-64x64-8x8"],
    [64, 64, 65536, "split-register-64x64-8x8"],
    [4, 4096, 4096, "few-rows"],
    [1, 4096, 4096, "matrix-vector"],
    [4096, 1, 4096, "matrix-vector"],
    [40, 40, 40, "register-32x32-4x4"],
    [40, 40, 0, "naive"],
  ])("without measurements, %d × %d × %d runs %s", (m, n, k, name) => {
    expect(staticChoice(productOf(m, n, k), minimalDevice).name).toBe(name);
  });

  test("uses a measured choice that can run, and reports a variant that does not exist", () => {
    const product = productOf(64, 64, 64);
    expect(chooseVariant(product, minimalDevice, { matmulVariant: () => "direct-8x8" }).name).toBe("direct-8x8");
    expect(chooseVariant(product, minimalDevice, { matmulVariant: () => "matrix-vector" })).toBe(
      staticChoice(product, minimalDevice),
    );
    expect(() => chooseVariant(product, minimalDevice, { matmulVariant: () => "direct-9x9" })).toThrow(
      /direct-9x9.*measure this device again/,
    );
  });
});

// Variants with split sums and vector products have their own shapes below. One transposed variant represents all
// transposed variants, and subgroup matrices run on no software adapter. Software adapters take seconds to compile a
// large tile, so one tile represents all large tiles; `matmul.full.test.ts` runs all variants.
describeVariants(
  matmulVariants
    .map(({ name }) => name)
    .filter(
      (name) =>
        !/matrix|^split|^transpose-register-(64|128)|^transpose-direct-8/.test(name) && !largeTiles.includes(name),
    ),
);

describe.skipIf(!hasAdapter)("numbers", () => {
  let products: ForcedProducts;
  beforeAll(async () => {
    products = await ForcedProducts.open();
  });
  afterAll(() => products.backend.close());

  const whole = { batch: 1, rows: 128, columns: 64, inner: 64 };
  const long = { batch: 2, rows: 9, columns: 13 };

  const checkRemainders = async (name: string, among: readonly (readonly [boolean, boolean])[]): Promise<void> => {
    for (const [transposeA, transposeB] of among) {
      const shape = transposeA === transposeB ? even : odd;
      await products.check(
        name,
        productOf(shape.rows, shape.columns, shape.inner, { batch: shape.batch, transposeA, transposeB }),
      );
      await products.check(name, productOf(whole.rows, whole.columns, whole.inner, { transposeA, transposeB }));
    }
  };
  // Register tiles take long to compile, so only one of the four layouts is tested.
  test.each([
    ["register-32x32-4x4", layouts.slice(0, 1)],
    ["direct-4x4", layouts],
    ["subgroup-8x4", layouts],
  ] as const)("%s is correct for the other remainders, too", checkRemainders);
  test("register-32x32-4x4 is correct for the other remainders in the other layouts", { tags: "full" }, () =>
    checkRemainders("register-32x32-4x4", layouts.slice(1)),
  );

  test.each(["split-register-32x32-4x4", "split-direct-4x4"])("%s splits long sums", async (name) => {
    for (const transposeA of [false, true]) {
      const product = productOf(long.rows, long.columns, transposeA ? 1031 : 2063, { batch: long.batch, transposeA });
      expect(matmulVariant(name)!.plan(product, products.backend.facts).passes).toHaveLength(2);
      await products.check(name, product);
    }
    await products.check(name, productOf(32, 64, 512, { transposeA: true }));
  });

  test("matrix-vector and few-rows are correct for rows and columns, transposed or not", async () => {
    for (const [transposeA, transposeB] of layouts) {
      for (const [m, n, k] of [
        [1, 70, 300],
        [1, 67, 301],
        [70, 1, 300],
        [67, 1, 301],
        [1, 1, 5],
        [1, 3, 3],
      ] as const)
        await products.check("matrix-vector", productOf(m, n, k, { batch: 3, transposeA, transposeB }));
      for (const [m, n, k] of [
        [2, 70, 300],
        [7, 67, 301],
        [8, 3, 3],
      ] as const)
        await products.check("few-rows", productOf(m, n, k, { batch: 3, transposeA, transposeB }));
    }
  });

  test.each([
    "naive",
    "tiled-16x16",
    "register-32x32-4x4",
    "direct-4x4",
    "split-direct-4x4",
    "matrix-vector",
    "transpose-direct-4x4",
  ])("%s multiplies f16 with sums in f32", async (name) => {
    if (!products.backend.facts.f16) return;
    const rows = name === "matrix-vector" ? 1 : 36;
    await products.check(name, productOf(rows, 40, 264, { dtype: "f16", resultDtype: "f16", transposeB: true }));
    await products.check(name, productOf(rows, 40, 264, { dtype: "f16", resultDtype: "f32" }));
    if (!/naive|tiled|vector|^direct/.test(name)) return;
    await products.check(
      name,
      productOf(Math.min(rows, 9), 39, 263, { dtype: "f16", resultDtype: "f16", transposeB: true }),
    );
  });

  test.each(["register-32x32-4x4", "direct-4x4", "subgroup-8x4", "tiled-16x16"])(
    "%s keeps an infinity in its row and column",
    async (name) => {
      const product = productOf(45, 39, 19, { transposeB: true });
      const [a, b] = operands(product);
      const [x, w] = [Float32Array.from(a.toNumbers()), Float32Array.from(b.toNumbers())];
      x[44 * 19 + 18] = Infinity;
      w[38 * 19 + 18] = Infinity;
      const y = (await products.run(name, product, [NdArray.from(x, a.shape), NdArray.from(w, b.shape)])).toNumbers();
      for (let m = 0; m < 45; m++)
        for (let n = 0; n < 39; n++) expect(Number.isFinite(y[m * 39 + n]!), `${m}, ${n}`).toBe(m !== 44 && n !== 38);
    },
  );

  test.each(["split-register-32x32-4x4", "matrix-vector", "subgroup-8x4"])(
    "%s gives the same bits twice",
    async (name) => {
      const product = name === "matrix-vector" ? productOf(1, 99, 1001) : productOf(33, 65, 1001, { transposeA: true });
      const inputs = operands(product);
      expect((await products.run(name, product, inputs)).toNumbers()).toEqual(
        (await products.run(name, product, inputs)).toNumbers(),
      );
    },
  );

  test("more workgroups than one dimension of a grid has", async () => {
    await products.check("direct-4x4", productOf(2, 4, 3, { batch: 66_000 }));
  });
});
