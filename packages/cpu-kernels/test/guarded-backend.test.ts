import { checkValues, conformanceCases } from "@skein/testing";
import { evaluate, NdArray, softmax, type Tensor } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { createGuardedBackend } from "./guarded-backend.ts";

// Addresses of faulty writes. The arguments of `softmax` are the addresses of its output and of its input, rows and
// width.
const faults: readonly (readonly [name: string, at: (output: number, bytes: number) => number])[] = [
  ["behind its output", (output, bytes) => output + bytes],
  ["before its output", (output) => output - 1],
  ["into its input", (output, bytes) => output - 256 - bytes],
];

test.each(faults)("detects a kernel that writes a byte %s", async (_, at) => {
  const backend = await createGuardedBackend("scalar", (wasm, memory) => ({
    ...wasm,
    softmax: (output, input, rows, width) => {
      wasm["softmax"]!(output!, input!, rows!, width!);
      new Uint8Array(memory.buffer)[at(output!, 4 * rows! * width!)]! ^= 1;
      return 0;
    },
  }));
  const run = evaluate((x: Tensor) => softmax(x), backend);
  await expect(run(NdArray.from([1, 2, 3, 4, 5, 6, 7], [1, 7]))).rejects.toThrow(
    /softmax of f32\[1, 7\] wrote outside its outputs and scratch/,
  );
});

test("detects a kernel that does not write a part of its output", async () => {
  const backend = await createGuardedBackend("scalar", (wasm) => ({
    ...wasm,
    softmax: (output, input, rows, width) => wasm["softmax"]!(output!, input!, rows! - 1, width!),
  }));
  const row = conformanceCases.find(({ op, name }) => op === "softmax" && name === "ten classes")!;
  await expect(checkValues(row, backend)).rejects.toThrow(/is NaN, the reference says/);
});
