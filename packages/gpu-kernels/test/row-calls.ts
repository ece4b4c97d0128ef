import type { NdArray, Shape, TensorSpec } from "@skein/tensor-core";
import { operators, type Params, type ReferenceArray } from "@skein/tensor-core/backend";
import { firstDifference, normalArray, type Tolerance, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "./gpu.ts";
import { nodeOf, runPlan } from "./run-plan.ts";
import type { WebGpuDevice } from "../src/device.ts";
import type { WebGpuBackend } from "../src/index.ts";
import type { DeviceFacts, KernelPlan } from "../src/kernel.ts";
import { kernels } from "../src/kernel-table.ts";
import { layerNormProgram, rmsNormProgram } from "../src/kernels/rows/norm.ts";
import { normBackwardProgram } from "../src/kernels/rows/norm-backward.ts";
import type { RowLayout } from "../src/kernels/rows/row-layout.ts";
import { planWith, rowsOf } from "../src/kernels/rows/row-plan.ts";
import { type RowProgram, vectorWidth } from "../src/kernels/rows/row-program.ts";
import {
  crossEntropyBackwardProgram,
  crossEntropyProgram,
  logSoftmaxBackwardProgram,
  logSoftmaxProgram,
  softmaxBackwardProgram,
  softmaxProgram,
} from "../src/kernels/rows/softmax.ts";

export const spec = (shape: Shape, dtype: TensorSpec["dtype"] = "f32"): TensorSpec => ({ dtype, shape });

/** Returns standard normal values, every seventh of which is twenty times as large. */
export const outliers = (shape: Shape, seed = 1): NdArray => {
  const array = normalArray(shape, seed);
  for (let i = 3; i < array.data.length; i += 7) array.data[i] = 20 * array.data[i]!;
  return array;
};

export interface Call {
  readonly op: string;
  readonly params: Params;
  readonly inputs: readonly NdArray[];
}

/** Returns valid operands of an operator over rows [rows, columns]: labels are classes, statistics are plausible. */
export const callOf = (op: string, rows: number, columns: number): Call => {
  const shape = [rows, columns];
  const x = outliers(shape);
  const g = normalArray(shape, 2);
  const gamma = uniformArray([columns], 0.5, 1.5, 7);
  const means = normalArray([rows], 3);
  const rstds = uniformArray([rows], 0.3, 0.5, 4);
  const labels = uniformArray([rows], 0, columns, 3, "i32");
  const inputs: { readonly [name: string]: readonly NdArray[] } = {
    softmax: [x],
    "log-softmax": [x],
    "softmax-backward": [uniformArray(shape, 0, 2 / columns), g],
    "log-softmax-backward": [uniformArray(shape, -20, -2), g],
    "cross-entropy": [x, labels],
    "cross-entropy-backward": [
      x,
      labels,
      uniformArray([rows], 60, 70),
      uniformArray([rows], 1, 1e4, 4),
      normalArray([rows], 2),
    ],
    "layer-norm": [x, gamma, normalArray([columns], 8)],
    "rms-norm": [x, gamma],
    "layer-norm-backward": [x, gamma, means, rstds, g],
    "rms-norm-backward": [x, gamma, rstds, g],
  };
  return { op, params: op.endsWith("-norm") ? { epsilon: 1e-5 } : {}, inputs: inputs[op]! };
};

export const rowOps = [
  "softmax",
  "log-softmax",
  "softmax-backward",
  "log-softmax-backward",
  "cross-entropy",
  "cross-entropy-backward",
  "layer-norm",
  "rms-norm",
  "layer-norm-backward",
  "rms-norm-backward",
] as const;

export const specsOf = ({ op, inputs, params }: Call): { inputs: TensorSpec[]; outputs: readonly TensorSpec[] } => {
  const specs = inputs.map(({ dtype, shape }) => spec(shape, dtype));
  return { inputs: specs, outputs: operators[op]!.infer(specs, params) };
};

export const planOf = (call: Call, facts: DeviceFacts): KernelPlan => {
  const { inputs, outputs } = specsOf(call);
  return kernels[call.op]!.plan(
    nodeOf(call.op, inputs, outputs, call.params),
    facts,
    {},
    inputs.map(() => false),
  );
};

export const programOf = ({ op, inputs, params }: Call): RowProgram => {
  const { columns } = rowsOf(inputs[0]!);
  const epsilon = params["epsilon"] as number;
  const programs: { readonly [name: string]: () => RowProgram } = {
    softmax: () => softmaxProgram,
    "log-softmax": () => logSoftmaxProgram,
    "softmax-backward": () => softmaxBackwardProgram,
    "log-softmax-backward": () => logSoftmaxBackwardProgram,
    "cross-entropy": () => crossEntropyProgram(columns),
    "cross-entropy-backward": () => crossEntropyBackwardProgram(columns),
    "layer-norm": () => layerNormProgram(epsilon),
    "rms-norm": () => rmsNormProgram(epsilon, columns),
    "layer-norm-backward": () => normBackwardProgram({ centred: true, columns }),
    "rms-norm-backward": () => normBackwardProgram({ centred: false, columns }),
  };
  return programs[op]!();
};

export const sameBits = (a: readonly Float32Array[], b: readonly Float32Array[]): boolean =>
  a.every((array, i) => Buffer.compare(new Uint8Array(array.buffer), new Uint8Array(b[i]!.buffer)) === 0);

export const rowTolerance: Tolerance = { absolute: 3e-5, relative: 3e-5 };

/** Computes the results with the f64 reference. */
export const reference = ({ op, inputs, params }: Call, outputs: readonly TensorSpec[]): Float64Array[] => {
  const operands = inputs.map(
    (array): ReferenceArray => ({ spec: spec(array.shape, array.dtype), data: Float64Array.from(array.data) }),
  );
  return operators[op]!.reference(operands, params, outputs) as Float64Array[];
};

/** Runs a plan on a device. Returns all outputs, including statistics. */
export const runCall = async (device: WebGpuDevice, call: Call, plan: KernelPlan): Promise<Float32Array[]> => {
  const buffers = await runPlan(device, plan, call.inputs, specsOf(call).outputs);
  return buffers.map((buffer) => new Float32Array(buffer));
};

/** Runs a plan and compares every output with the expected output. */
export const checkCall = async (
  device: WebGpuDevice,
  call: Call,
  plan: KernelPlan,
  expected: readonly Float64Array[],
  tolerance: Tolerance,
  name: string,
): Promise<void> => {
  const actual = await runCall(device, call, plan);
  expected.forEach((output, i) => {
    if (actual[i] === undefined) return;
    expect(
      firstDifference(actual[i], output, tolerance),
      `${name}: ${plan.passes.map(({ label }) => label).join(", ")}, output ${i}`,
    ).toBeUndefined();
  });
};

/**
 * Returns layouts of every kind for a row. Each layout supports every program, even if the rule would choose a
 * different layout.
 */
export const layoutsOf = (columns: number, { subgroups, minSubgroupSize }: DeviceFacts): RowLayout[] => {
  const width = vectorWidth(columns);
  const shared = { width, columns: columns / width, parts: 1 };
  const shuffles = subgroups ? [1, minSubgroupSize] : [1];
  const wide: RowLayout[] = [
    { ...shared, shuffled: 1, lanes: 1, workgroupSize: 64, kind: "streamed" },
    { ...shared, shuffled: 1, lanes: 256, workgroupSize: 256, kind: "streamed" },
  ];
  return shuffles.flatMap((shuffled): RowLayout[] => [
    ...(shuffled === 1 ? wide : []),
    { ...shared, shuffled, lanes: 32, workgroupSize: 64, kind: "resident" },
    { ...shared, shuffled, lanes: 4, workgroupSize: 16, kind: "streamed" },
    { ...shared, shuffled, lanes: 32, workgroupSize: 32, parts: 3, kind: "streamed" },
  ]);
};

/**
 * Tests that programs have the same results in every layout, over rows of one width. If the shader cache is empty, each
 * program takes seconds to compile.
 */
export const describeLayouts = (ops: readonly string[], rows: number, columns: number): void => {
  describe.skipIf(!hasAdapter)("row kernels on a device", () => {
    let backend: WebGpuBackend;
    beforeAll(async () => {
      backend = await openBackend();
    });
    afterAll(() => backend.close());

    test.each(ops)(`%s of [${rows}, ${columns}] is the same in every layout, run after run`, async (op) => {
      const { device, facts } = backend;
      const call = callOf(op, rows, columns);
      const program = programOf(call);
      const expected = reference(call, specsOf(call).outputs).slice(0, program.outputs.length);
      for (const layout of layoutsOf(columns, facts)) {
        if (layout.kind === "resident" && program.finish === undefined) continue;
        const plan = planWith(program, layout, rows);
        await checkCall(device, call, plan, expected, rowTolerance, `[${rows}, ${columns}]`);
        expect(sameBits(await runCall(device, call, plan), await runCall(device, call, plan))).toBe(true);
      }
    });
  });
};
