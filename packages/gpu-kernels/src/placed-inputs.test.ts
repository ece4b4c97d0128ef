import {
  add,
  concat,
  dynamicUpdateSlice,
  evaluate,
  multiply,
  type NdArray,
  reshape,
  scatterAdd,
  type Tensor,
  trace,
} from "@skein/tensor-core";
import { optimize, planMemory } from "@skein/tensor-core/backend";
import { normalArray, uniformArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../test/gpu.ts";
import { minimalDevice } from "./minimal-device.ts";
import { lower } from "./lower.ts";
import type { WebGpuBackend } from "./webgpu-backend.ts";

/**
 * Returns the pass labels of `op`, and the number of operands that are read from copies because they overlap written
 * memory.
 */
const passesOf = (
  op: string,
  fn: (...inputs: Tensor[]) => Tensor,
  inputs: readonly NdArray[],
): { labels: string[]; copies: number } => {
  const graph = optimize(trace(fn, inputs as never).graph);
  const plan = planMemory(graph, { alignment: 256, viewAlignment: minimalDevice.bindingAlignment });
  const steps = lower(graph, plan, minimalDevice, {}).steps.filter(
    (step) => step.kind === "dispatch" && step.node.op === op,
  );
  return {
    labels: steps.map((step) => (step.kind === "dispatch" ? step.label : "")),
    copies: steps.reduce((sum, step) => sum + (step.kind === "dispatch" ? step.copies.length : 0), 0),
  };
};

/** Returns a concatenation of three parts. Parts 1 and 2 begin at multiples of 256 bytes; part 3 does not. */
const bucket = (a: Tensor, b: Tensor, c: Tensor): Tensor => concat([add(a, 1), multiply(b, 2), add(c, 3)]);
const bucketInputs = [normalArray([128], 1), normalArray([67], 2), normalArray([5], 3)];

/** Adds rows to a sum whose memory no other operator uses. */
const onto = (base: Tensor, indices: Tensor, updates: Tensor): Tensor => scatterAdd(add(base, 1), indices, updates);
const ontoInputs = [normalArray([40, 8], 1), uniformArray([30], 0, 40, 2, "i32"), normalArray([30, 8], 3)];

describe("inputs that are already in the output", () => {
  test("are not copied by a concat", () => {
    const { labels, copies } = passesOf(
      "concat",
      (...inputs) => bucket(inputs[0]!, inputs[1]!, inputs[2]!),
      bucketInputs,
    );
    expect(labels).toEqual(["concat 1 operands 4 bytes"]);
    expect(copies).toBe(0);
  });

  test("are not copied by a scatter-add", () => {
    const inPlace = passesOf("scatter-add", (...inputs) => onto(inputs[0]!, inputs[1]!, inputs[2]!), ontoInputs);
    expect(inPlace.labels).toEqual(["scatter-add direct"]);
    const passes = passesOf("scatter-add", (...inputs) => scatterAdd(inputs[0]!, inputs[1]!, inputs[2]!), ontoInputs);
    expect(passes.labels).toEqual(["scatter-add base 16 bytes", "scatter-add direct"]);
  });

  test("are not copied by an update of a part", () => {
    const inputs = [normalArray([40, 8], 1), normalArray([3, 8], 2)];
    const update = (x: Tensor, part: Tensor): Tensor => dynamicUpdateSlice(x, part, [7, 0]);
    const inPlace = passesOf("dynamic-update-slice", (x, part) => update(add(x!, 1), part!), inputs);
    expect(inPlace.labels).toEqual(["dynamic-update-slice 16 bytes"]);
    const passes = passesOf("dynamic-update-slice", (x, part) => update(x!, part!), inputs);
    expect(passes.labels).toEqual(["dynamic-update-slice base 16 bytes", "dynamic-update-slice 16 bytes"]);
  });
});

describe.skipIf(!hasAdapter)("inputs that are already in the output, on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const run = async (fn: (...inputs: Tensor[]) => Tensor, inputs: readonly NdArray[]): Promise<number[]> =>
    ((await evaluate(fn, backend)(...inputs)) as NdArray).toNumbers();

  test("keep their values in a concat, next to copied inputs", async () => {
    const expected = bucketInputs.flatMap((input, i) =>
      input.toNumbers().map((x) => Math.fround(i === 1 ? x * 2 : x + (i === 0 ? 1 : 3))),
    );
    expect(await run((...inputs) => bucket(inputs[0]!, inputs[1]!, inputs[2]!), bucketInputs)).toEqual(expected);
  });

  test("may be concatenated with themselves", async () => {
    const [a] = bucketInputs;
    const once = a!.toNumbers().map((x) => Math.fround(x + 1));
    const twice = (x: Tensor): Tensor => {
      const y = add(x, 1);
      return reshape(concat([y, y]), [2, 128]);
    };
    expect(await run((x) => twice(x!), [a!])).toEqual([...once, ...once]);
  });

  test("are the base of a scatter-add", async () => {
    const [base, indices, updates] = ontoInputs;
    const expected = Float32Array.from(base!.data as Float32Array, (x) => x + 1);
    for (let i = 0; i < 30; i++)
      for (let j = 0; j < 8; j++) expected[8 * indices!.data[i]! + j]! += updates!.data[8 * i + j]!;
    expect(await run((...inputs) => onto(inputs[0]!, inputs[1]!, inputs[2]!), ontoInputs)).toEqual([...expected]);
  });
});
