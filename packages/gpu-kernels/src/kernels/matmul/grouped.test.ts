import { type NdArray, NdArray as Arrays } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { assertClose, normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { checkNode } from "../../../test/run-node.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import type { KernelPlan, Pass } from "../../kernel.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { directPass } from "./direct.ts";
import { groupedPlan, groupedWeightPlan } from "./grouped.ts";
import { rowsOfGroups, sumsOfGroups } from "./placement.ts";
import type { Product } from "./product.ts";
import { registerTiledPass, type TileShape } from "./register-tiled.ts";
import { whole } from "./split-inner.ts";

const integers = (values: readonly number[]): NdArray => Arrays.from(values, [values.length], "i32");

const labelsOf = ({ passes }: KernelPlan): string[] => passes.map(({ label }) => label);

describe("grouped products without a device", () => {
  test("use the largest tile that a typical group fills", () => {
    const sizes = { rows: 8192, inner: 1024, columns: 4096, groups: 8 };
    expect(labelsOf(groupedPlan(sizes, false, minimalDevice))).toEqual(["grouped-matmul NN register 128x128-8x8"]);
    expect(labelsOf(groupedPlan({ ...sizes, groups: 128 }, false, minimalDevice))).toEqual([
      "grouped-matmul NN register 64x128-8x8",
    ]);
    expect(labelsOf(groupedPlan({ ...sizes, groups: 1024 }, true, minimalDevice))).toEqual([
      "grouped-matmul NT register 32x32-4x4",
    ]);
    expect(labelsOf(groupedWeightPlan(sizes, minimalDevice))).toEqual([
      "grouped-matmul-backward-weight TN register 128x128-8x8",
    ]);
  });

  test("start one workgroup per full tile, one more per group and one after the last", () => {
    const product = { rows: 1000 } as Product;
    expect(rowsOfGroups(product, 7).tilesM(64)).toBe(Math.floor(1000 / 64) + 7 + 1);
  });
});

describe.skipIf(!hasAdapter)("grouped products on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const tolerance = { absolute: 1e-4, relative: 1e-5 };
  const counts = integers([70, 0, 3, -1, 64, 33]);
  const operands = (rows: number, inner: number, columns: number): NdArray[] => [
    normalArray([rows, inner], 1),
    normalArray([6, inner, columns], 2),
    counts,
  ];

  test.each([
    [181, 32, 40],
    [170, 19, 37],
    [90, 17, 36],
  ])("tiles in workgroup memory: %d rows of %d to %d", async (rows, inner, columns) => {
    await checkNode(
      backend,
      "grouped-matmul",
      operands(rows, inner, columns),
      { transposeW: false },
      { facts: minimalDevice, tolerance },
    );
    const [x, , c] = operands(rows, inner, columns);
    const weights = [x!, normalArray([rows, columns], 3), c!];
    await checkNode(backend, "grouped-matmul-backward-weight", weights, {}, { facts: minimalDevice, tolerance });
  });

  const large: TileShape = { rows: 64, columns: 64, perRows: 8, perColumns: 8 };
  const small = { rows: 4, columns: 4 };

  /**
   * Runs the workgroups of a pass in sequence, the last workgroup first, so that writes outside of a tile's group are
   * not overwritten and can be detected.
   */
  const backwards = ({ code, groups, sizes, ...pass }: Pass): Pass[] =>
    Array.from({ length: groups }, (_, i) => ({
      ...pass,
      groups: 1,
      sizes: { ...sizes, chosen: groups - 1 - i },
      code: code.replace(
        "fn main(group: u32, lane: u32) {",
        "fn main(only: u32, lane: u32) {\n  let group = sizes.chosen;",
      ),
    }));

  const [rows, inner, columns] = [181, 24, 68];
  const forward: Product = {
    batch: 1,
    rows,
    columns,
    inner,
    transposeA: false,
    transposeB: false,
    dtype: "f32",
    resultDtype: "f32",
  };
  const backward: Product = { ...forward, batch: 6, rows: inner, inner: rows, transposeA: true };
  const placements = { forward: rowsOfGroups(forward, 6), backward: sumsOfGroups(backward, 6) };

  test.each([
    [
      "large",
      registerTiledPass(forward, large, whole(forward), placements.forward),
      registerTiledPass(backward, large, whole(backward), placements.backward),
    ],
    [
      "direct",
      directPass(forward, small, whole(forward), placements.forward),
      directPass(backward, small, whole(backward), placements.backward),
    ],
  ])("%s tiles write nothing outside their group, in any order", async (_, rowsPass, sumsPass) => {
    const [x, w] = operands(rows, inner, columns) as [NdArray, NdArray];
    const check = async (op: string, inputs: readonly NdArray[], params: object, pass: Pass): Promise<void> => {
      const [spec] = operators[op]!.infer(inputs, params as never);
      const values = inputs.map((array) => ({ spec: array, data: Float64Array.from(array.toNumbers()) }));
      const [expected] = operators[op]!.reference(values, params as never, [spec!]);
      for (const passes of [[pass], backwards(pass)]) {
        const [bits] = await runPlan(backend.device, { passes }, inputs, [spec!]);
        assertClose(
          new Arrays("f32", spec!.shape, new Float32Array(bits!)),
          { spec: spec!, data: expected! },
          op,
          tolerance,
        );
      }
    };
    await check("grouped-matmul", [x, w, counts], { transposeW: false }, rowsPass);
    await check("grouped-matmul-backward-weight", [x, normalArray([rows, columns], 3), counts], {}, sumsPass);
  });
});
