import { minimalDevice } from "../../minimal-device.ts";
import { NdArray, type TensorSpec } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { normalArray, type Tolerance, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import {
  type Call,
  callOf,
  checkCall,
  layoutsOf,
  outliers,
  planOf,
  programOf,
  reference,
  rowOps,
  rowTolerance,
  runCall,
  sameBits,
  spec,
  specsOf,
} from "../../../test/row-calls.ts";
import { nodeOf } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { kernels } from "../../kernel-table.ts";
import { type RowLayout, rowLayout } from "./row-layout.ts";
import { planWith } from "./row-plan.ts";
import { vectorWidth } from "./row-program.ts";
import { softmaxProgram } from "./softmax.ts";

const large: DeviceFacts = {
  ...minimalDevice,
  adapter: "large",
  subgroups: true,
  minSubgroupSize: 32,
  maxWorkgroupSize: 1024,
};

/** Returns the bytes of workgroup memory that a shader declares. */
const workgroupBytes = (code: string, columns: number): number => {
  const words: { readonly [type: string]: number } = {
    f32: 1,
    "vec2<f32>": 2,
    "vec4<f32>": 4,
    values: vectorWidth(columns),
  };
  return [...code.matchAll(/var<workgroup> \w+: array<(.+), (\d+)>;/g)].reduce(
    (sum, [, type, count]) => sum + 4 * words[type!]! * Number(count),
    0,
  );
};

describe("plans of row kernels", () => {
  const shapes = [
    [1, 1],
    [3, 3],
    [70_000, 10],
    [65_536, 128],
    [4096, 768],
    [64, 1000],
    [3, 4099],
    [512, 16_384],
    [8, 50_257],
    [1, 1_000_000],
    [2000, 50_257],
    [70_000, 512],
  ] as const;
  const columnOperand = (columns: number): TensorSpec => spec([columns]);
  const specsFor = (op: string, rows: number, columns: number): TensorSpec[] => {
    const [x, row, labels, gamma] = [spec([rows, columns]), spec([rows]), spec([rows], "i32"), columnOperand(columns)];
    const inputs: { readonly [name: string]: TensorSpec[] } = {
      softmax: [x],
      "log-softmax": [x],
      "softmax-backward": [x, x],
      "log-softmax-backward": [x, x],
      "cross-entropy": [x, labels],
      "cross-entropy-backward": [x, labels, row, row, row],
      "layer-norm": [x, gamma, gamma],
      "rms-norm": [x, gamma],
      "layer-norm-backward": [x, gamma, row, row, x],
      "rms-norm-backward": [x, gamma, row, x],
    };
    return inputs[op]!;
  };
  const factsOf = [
    minimalDevice,
    { ...minimalDevice, software: true },
    large,
    { ...large, software: true },
    { ...large, minSubgroupSize: 8 },
  ];

  test.each(rowOps)("%s stays within every limit", (op) => {
    for (const [rows, columns] of shapes)
      for (const facts of factsOf) {
        const params = op.endsWith("-norm") ? { epsilon: 1e-5 } : {};
        const inputs = specsFor(op, rows, columns);
        const outputs = operators[op]!.infer(inputs, params);
        const { passes } = kernels[op]!.plan(nodeOf(op, inputs, outputs, params), facts, {}, []);
        for (const pass of passes) {
          const where = `${pass.label} of [${rows}, ${columns}]`;
          expect(pass.groups, where).toBeGreaterThan(0);
          expect(pass.workgroupSize, where).toBeLessThanOrEqual(facts.maxWorkgroupSize);
          expect(pass.bindings.length, where).toBeLessThanOrEqual(facts.maxBindings);
          expect(workgroupBytes(pass.code, columns), where).toBeLessThanOrEqual(facts.maxWorkgroupBytes);
          expect(pass.features ?? [], where).toEqual(facts.subgroups ? (pass.features ?? []) : []);
          expect(pass.code.length, where).toBeLessThan(20_000);
        }
      }
  });

  test("reads a row that fits in registers in one pass", () => {
    for (const columns of [1, 7, 128, 768, 4096, 8192]) {
      expect(rowLayout(columns, minimalDevice, true)).toMatchObject({ kind: "resident", parts: 1 });
      // biome-ignore format: one call
      expect(kernels["layer-norm-backward"]!.plan(nodeOf("layer-norm-backward", specsFor("layer-norm-backward", 4096, Math.min(columns, 4096)), [], {}), minimalDevice, {}, []).passes).toHaveLength(2);
    }
  });

  test("a subgroup processes a row without workgroup memory if possible", () => {
    const layout = rowLayout(768, large, true);
    expect(layout.lanes).toBe(32);
    expect(planWith(softmaxProgram, layout, 4096).passes[0]!.code).not.toContain("workgroup");
  });

  test("long rows are split over many workgroups, and rows of a vocabulary use one workgroup each", () => {
    expect(planWith(softmaxProgram, rowLayout(1_000_000, minimalDevice, true), 1).passes[0]!.groups).toBeGreaterThan(
      100,
    );
    expect(planWith(softmaxProgram, rowLayout(50_257, minimalDevice, true), 4096).passes).toHaveLength(1);
  });
});

describe.skipIf(!hasAdapter)("row kernels on a device", () => {
  let backend: WebGpuBackend;
  let factsToRun: { readonly [name: string]: DeviceFacts };
  beforeAll(async () => {
    backend = await openBackend();
    const { facts } = backend;
    factsToRun = {
      own: facts,
      "minimalDevice, as a GPU": minimalDevice,
    };
  });
  afterAll(() => backend.close());

  const check = (
    call: Call,
    plan: KernelPlan,
    expected: readonly Float64Array[],
    tolerance: Tolerance,
    name: string,
  ): Promise<void> => checkCall(backend.device, call, plan, expected, tolerance, name);

  type Sizes = readonly [rows: number, columns: number];
  const checkSizes = async (op: string, own: readonly Sizes[], asGpu: readonly Sizes[]): Promise<void> => {
    for (const [name, facts, sizes] of [
      ["own", backend.facts, own],
      ["as a GPU", minimalDevice, asGpu],
    ] as const)
      for (const [rows, columns] of sizes) {
        const call = callOf(op, rows, columns);
        const expected = reference(call, specsOf(call).outputs);
        await check(call, planOf(call, facts), expected, rowTolerance, `${name} [${rows}, ${columns}]`);
      }
  };
  const [short, uneven, long]: readonly Sizes[] = [
    [9, 1],
    [3, 2051],
    [2, 50_257],
  ];

  // Uses the facts of a GPU. Tests an odd row in registers, and a row that is split over workgroups.
  test.each(rowOps)("%s equals the reference for short, odd and long rows", (op) =>
    checkSizes(op, [short!, [7, 258]], [uneven!, long!]),
  );
  test.each(rowOps)("%s equals the reference for rows of further lengths", { tags: "full" }, (op) =>
    checkSizes(op, [[130, 10], [5, 768], uneven!, long!], []),
  );

  /** Returns a layout that keeps a row in registers, and a layout that splits the row. */
  const twoLayouts = (columns: number): RowLayout[] =>
    layoutsOf(columns, backend.facts).filter(
      ({ kind, parts, shuffled }) => shuffled === 1 && (kind === "resident" || parts > 1),
    );

  test.each(["softmax", "layer-norm", "layer-norm-backward", "cross-entropy"])(
    "%s over more workgroups than one dimension of a grid has",
    async (op) => {
      const rows = 70_000;
      const call = callOf(op, rows, 4);
      const expected = reference(call, specsOf(call).outputs);
      await check(call, planOf(call, minimalDevice), expected, rowTolerance, "rule");
      const layout: RowLayout = {
        width: 4,
        columns: 1,
        lanes: 2,
        shuffled: 1,
        workgroupSize: 2,
        parts: 1,
        kind: "streamed",
      };
      const plan = planWith(programOf(call), layout, rows);
      expect(plan.passes[0]!.groups).toBe(rows);
      await check(
        call,
        plan,
        expected.slice(0, op === "layer-norm-backward" ? 1 : 3),
        rowTolerance,
        "one row a workgroup",
      );
    },
  );

  const checkColumnSums = async (op: string): Promise<void> => {
    for (const [rows, columns] of [
      [70_001, 3],
      [3000, 132],
      [40, 4100],
    ] as const) {
      const call = callOf(op, rows, columns);
      const expected = reference(call, specsOf(call).outputs);
      // The rounding error of a sum with many terms of both signs is proportional to the magnitude of the terms, not of
      // the sum.
      const wide = { absolute: 1e-5 * Math.sqrt(rows), relative: 3e-5 };
      for (const [name, facts] of Object.entries(factsToRun)) {
        const plan = planOf(call, facts);
        await check(call, plan, expected, wide, `${name} [${rows}, ${columns}]`);
        expect(sameBits(await runCall(backend.device, call, plan), await runCall(backend.device, call, plan))).toBe(
          true,
        );
      }
    }
  };
  test("layer-norm-backward sums columns over many rows", () => checkColumnSums("layer-norm-backward"));
  test("rms-norm-backward sums columns over many rows", { tags: "full" }, () => checkColumnSums("rms-norm-backward"));

  const filled = (rows: number, columns: number, value: (row: number, column: number) => number): NdArray =>
    NdArray.from(
      Float32Array.from({ length: rows * columns }, (_, i) => value(Math.floor(i / columns), i % columns)),
      [rows, columns],
    );

  const odd: readonly (readonly [string, (row: number, column: number) => number])[] = [
    ["−∞ everywhere", () => -Infinity],
    ["all but one −∞", (_, column) => (column === 37 ? -3 : -Infinity)],
    ["one +∞", (_, column) => (column === 250 ? Infinity : 1)],
    ["one NaN", (row, column) => (column === (row * 97) % 300 ? NaN : 1)],
    ["a NaN with a sign among −∞", (_, column) => (column === 299 ? -NaN : -Infinity)],
    ["NaN beside +∞", (_, column) => (column % 2 === 0 ? NaN : Infinity)],
    ["equal", () => 3],
    ["far apart", (_, column) => (column === 5 ? 1e30 : -1e30)],
    ["one far above", (row, column) => (column === row ? 100 : -100)],
    ["zeros of both signs", (_, column) => (column % 2 === 0 ? 0 : -0)],
  ];

  test.each(odd)("softmax and related operators on rows with: %s", async (_, value) => {
    const rows = 3;
    const columns = 301;
    const x = filled(rows, columns, value);
    const labels = NdArray.from([0, 37, columns], [rows], "i32");
    for (const op of ["softmax", "log-softmax", "cross-entropy"]) {
      const call: Call = { op, params: {}, inputs: op === "cross-entropy" ? [x, labels] : [x] };
      const expected = reference(call, specsOf(call).outputs);
      for (const facts of Object.values(factsToRun)) await check(call, planOf(call, facts), expected, rowTolerance, op);
      for (const layout of twoLayouts(columns))
        if (layout.kind === "streamed" || op !== "cross-entropy")
          await check(call, planWith(programOf(call), layout, rows), expected, rowTolerance, op);
    }
  });

  test.each([-3.4028234663852886e38, 3.4028234663852886e38])(
    "rows of only %f, as a mask leaves them, are uniform",
    async (value) => {
      const columns = 301;
      for (const [op, entry] of [
        ["softmax", 1 / columns],
        ["log-softmax", -Math.log(columns)],
      ] as const) {
        const call: Call = { op, params: {}, inputs: [filled(2, columns, () => value)] };
        const expected = [new Float64Array(2 * columns).fill(entry)];
        for (const facts of Object.values(factsToRun))
          await check(call, planOf(call, facts), expected, rowTolerance, op);
        for (const layout of twoLayouts(columns))
          await check(call, planWith(programOf(call), layout, 2), expected, rowTolerance, op);
      }
    },
  );

  test("norms keep their digits for rows far from zero, of equal entries, and with one outlier", async () => {
    const rows = 4;
    const columns = 1030;
    const samples: readonly NdArray[] = [
      uniformArray([rows, columns], 1000, 1002),
      filled(rows, columns, () => 3),
      filled(rows, columns, (row, column) => (column === 0 ? 1e4 : Math.sin(column + row))),
      filled(rows, columns, (row, column) => (column === columns - 1 ? -1e4 : Math.cos(column * row))),
    ];
    for (const [i, x] of samples.entries()) {
      const call: Call = {
        op: "layer-norm",
        params: { epsilon: 1e-5 },
        inputs: [x, uniformArray([columns], 0.5, 1.5), normalArray([columns], 2)],
      };
      const expected = reference(call, specsOf(call).outputs);
      const wide =
        i === 0 ? { absolute: 1e-3, relative: 1e-3 } : i === 1 ? { absolute: 3e-4, relative: 3e-5 } : rowTolerance;
      for (const facts of Object.values(factsToRun))
        await check(call, planOf(call, facts), expected, wide, `sample ${i}`);
      for (const layout of twoLayouts(columns))
        await check(call, planWith(programOf(call), layout, rows), expected, wide, `sample ${i}`);
    }
  });

  test("a label that is not a class makes only its row NaN", async () => {
    const [rows, columns] = [6, 9];
    const labels = NdArray.from([0, -1, 9, 8, 2 ** 31 - 1, 3], [rows], "i32");
    const x = outliers([rows, columns]);
    const forward: Call = { op: "cross-entropy", params: {}, inputs: [x, labels] };
    const [maxima, totals, g] = [uniformArray([rows], 60, 70), uniformArray([rows], 1, 1e4, 4), normalArray([rows], 2)];
    const backward: Call = { op: "cross-entropy-backward", params: {}, inputs: [x, labels, maxima, totals, g] };
    for (const call of [forward, backward])
      for (const facts of Object.values(factsToRun))
        await check(call, planOf(call, facts), reference(call, specsOf(call).outputs), rowTolerance, call.op);
  });

  test("no rows, and rows without entries", async () => {
    for (const op of ["layer-norm-backward", "rms-norm-backward"]) {
      const call = callOf(op, 0, 5);
      const sums = (await runCall(backend.device, call, planOf(call, backend.facts))).slice(1);
      for (const sum of sums) expect([...sum]).toEqual([0, 0, 0, 0, 0]);
    }
    const empty = NdArray.zeros("f32", [3, 0]);
    const none = NdArray.zeros("f32", [0]);
    const calls: Call[] = [
      { op: "cross-entropy", params: {}, inputs: [empty, NdArray.zeros("i32", [3])] },
      { op: "layer-norm", params: { epsilon: 1e-5 }, inputs: [empty, none, none] },
      { op: "rms-norm", params: { epsilon: 1e-5 }, inputs: [empty, none] },
    ];
    for (const call of calls)
      await check(call, planOf(call, backend.facts), reference(call, specsOf(call).outputs), rowTolerance, call.op);
  });
});
