import { createCpuBackend } from "@skein/cpu-kernels";
import { type Backend, evaluate, type NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import { assertClose } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { loadPretrained } from "../src/node.ts";
import { checkpointFolder, checkpoints, expectedOf } from "./checkpoints.ts";

test("there are checkpoints", () => expect(checkpoints.length).toBeGreaterThan(2));

describe.each<[string, () => Backend | Promise<Backend>]>([
  ["the reference", referenceBackend],
  ["the CPU", createCpuBackend],
])("on %s", (_, open) => {
  test.each(checkpoints)("%s gives PyTorch's logits", async (name) => {
    const { model, params, state } = await loadPretrained(checkpointFolder(name));
    const { inputs, logits } = expectedOf(name);
    const apply = (p: unknown, s: unknown, x: Tensor): Tensor => model.apply(p, s, x, { train: false })[0];
    const found = (await evaluate(apply, await open())(params as never, state as never, inputs)) as NdArray;
    expect(found.shape).toEqual(logits.shape);
    assertClose(found, { spec: logits, data: logits.toNumbers() }, name, { absolute: 1e-4, relative: 1e-4 });
  });
});
