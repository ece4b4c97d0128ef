import { NdArray, type TensorSpec } from "@skein/tensor-core";
import { formatSpec, hostArrayType, type Operator, operators } from "@skein/tensor-core/backend";
import { assertClose, type Tolerance } from "@skein/testing";
import type { DeviceFacts, KernelPlan } from "../src/kernel.ts";
import { kernels } from "../src/kernel-table.ts";
import type { WebGpuBackend } from "../src/webgpu-backend.ts";
import { minimalDevice } from "../src/minimal-device.ts";
import { nodeOf, runPlan } from "./run-plan.ts";

type Params = Parameters<Operator["infer"]>[1];

const bytesOf: { readonly [type: string]: number } = {
  u32: 4,
  i32: 4,
  f32: 4,
  "atomic<u32>": 4,
  "vec2<u32>": 8,
  "vec2<f32>": 8,
};

const sizeOf = (type: string): number => {
  const [, element, count] = /^array<(.+), (\d+)>$/.exec(type) ?? [undefined, type, "1"];
  return Number(count) * (element!.startsWith("vec4") ? 16 : bytesOf[element!]!);
};

/** Returns the bytes of workgroup memory that the text of a pass declares. */
const workgroupBytes = (code: string): number =>
  [...code.matchAll(/var<workgroup> \w+: ([^;]+);/g)].reduce((sum, [, type]) => sum + sizeOf(type!), 0);

/** Returns the plan of one operator. @throws if a pass exceeds the limits in `facts`. */
export const planNode = (
  op: string,
  inputs: readonly TensorSpec[],
  params: Params,
  facts: DeviceFacts = minimalDevice,
): KernelPlan => {
  const plan = kernels[op]!.plan(nodeOf(op, inputs, operators[op]!.infer(inputs, params), params), facts, {}, []);
  for (const { label, bindings, workgroupSize, code, features = [] } of plan.passes) {
    if (bindings.length > facts.maxBindings || workgroupSize > facts.maxWorkgroupSize)
      throw new Error(`${label}: ${bindings.length} bindings, ${workgroupSize} invocations`);
    const bytes = workgroupBytes(code);
    // If a type is missing in the table above, the sum is NaN, which must not pass the check.
    if (!(bytes <= facts.maxWorkgroupBytes)) throw new Error(`${label}: ${bytes} bytes of workgroup memory`);
    if (features.includes("subgroups") && !facts.subgroups) throw new Error(`${label}: needs subgroups`);
  }
  return plan;
};

/** Runs the plan of one operator; twice if `runs` is 2. @throws if the results of the two runs differ bitwise. */
export const runNode = async (
  { device }: WebGpuBackend,
  op: string,
  inputs: readonly NdArray[],
  params: Params,
  { facts = minimalDevice, runs = 1 }: { readonly facts?: DeviceFacts | undefined; readonly runs?: 1 | 2 } = {},
): Promise<NdArray[]> => {
  const outputs = operators[op]!.infer(inputs, params);
  const plan = planNode(op, inputs, params, facts);
  const first = await runPlan(device, plan, inputs, outputs);
  const second = runs === 2 ? await runPlan(device, plan, inputs, outputs) : first;
  return outputs.map((spec, i) => {
    const [a, b] = [new Uint8Array(first[i]!), new Uint8Array(second[i]!)];
    if (a.some((byte, at) => byte !== b[at])) throw new Error(`${op} ${formatSpec(spec)}: two runs differ`);
    return new NdArray(spec.dtype, spec.shape, new hostArrayType[spec.dtype](first[i]!));
  });
};

/** Runs one operator and compares its results with the reference. */
export const checkNode = async (
  backend: WebGpuBackend,
  op: string,
  inputs: readonly NdArray[],
  params: Params,
  { facts, tolerance }: { readonly facts?: DeviceFacts; readonly tolerance?: Tolerance } = {},
): Promise<void> => {
  const outputs = operators[op]!.infer(inputs, params);
  const operands = inputs.map((array) => ({
    spec: { dtype: array.dtype, shape: array.shape },
    data: Float64Array.from(array.toNumbers()),
  }));
  const expected = operators[op]!.reference(operands, params, outputs);
  const actual = await runNode(backend, op, inputs, params, { facts });
  actual.forEach((array, i) =>
    assertClose(
      array,
      { spec: outputs[i]!, data: expected[i]! },
      `${op} of ${inputs.map(formatSpec).join(", ")}, output ${i}`,
      tolerance,
    ),
  );
};
