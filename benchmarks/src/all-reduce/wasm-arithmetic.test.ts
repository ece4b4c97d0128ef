import { directAllReduce, directReduceScatter } from "@skein/collectives/algorithms";
import { execute, createMemoryWorld, plainArithmetic, wasmArithmetic } from "@skein/collectives";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import { bytesPerElement, type DType, type Reduction } from "@skein/tensor-core";
import { expect, test } from "vitest";

// Tests of schedules together with the kernel module are here, because no package of the repository depends on both.
const dtypes: readonly DType[] = ["f32", "f16", "bf16", "i32", "u32"];
const reductions: readonly Reduction[] = ["sum", "max", "min"];

/**
 * Returns bytes whose 16-bit and 32-bit patterns are ordinary numbers of either sign, so that sums depend on their
 * order.
 */
const pattern = (rank: number, bytes: number, dtype: DType): Uint8Array => {
  const result = new Uint8Array(bytes);
  const view = new DataView(result.buffer);
  for (let i = 0; i < bytes; i += bytesPerElement[dtype]) {
    const value = Math.sin(i * 7 + rank * 3) * 10 ** ((i + rank) % 4);
    if (dtype === "f32") view.setFloat32(i, value, true);
    else if (bytesPerElement[dtype] === 4) view.setInt32(i, value * 1e5, true);
    else
      view.setUint16(i, (Math.abs(value) * 10 + (dtype === "f16" ? 0x3000 : 0x3f00)) | (value < 0 ? 0x8000 : 0), true);
  }
  return result;
};

test.each(["relaxed", "simd", "scalar"] as const)(
  "%s kernels give the bits of plain loops, over blocks and remainders",
  async (build) => {
    const memory = new WebAssembly.Memory({ initial: 32, maximum: 32, shared: true });
    const wasm = wasmArithmetic(await compileWasm(build), memory);
    const run = async (
      arithmetic: typeof wasm,
      dtype: DType,
      reduction: Reduction,
      worldSize: number,
      count: number,
    ): Promise<Uint8Array[]> => {
      const bytes = count * bytesPerElement[dtype];
      const regions = Array.from(
        { length: worldSize },
        (_, rank) => new Uint8Array(memory.buffer, 1024 + rank * 2 ** 18, bytes),
      );
      regions.forEach((region, rank) => region.set(pattern(rank, bytes, dtype)));
      const scattered = Array.from(
        { length: worldSize },
        (_, rank) =>
          new Uint8Array(
            memory.buffer,
            1024 + rank * 2 ** 18 + 2 ** 17,
            Math.floor(count / worldSize) * bytesPerElement[dtype],
          ),
      );
      await Promise.all(
        createMemoryWorld(worldSize, { sharesMemory: true }).map(async (transport, rank) => {
          const n = Math.floor(count / worldSize);
          const input = regions[rank]!.subarray(0, n * worldSize * bytesPerElement[dtype]);
          const scatter = directReduceScatter.schedule({ rank, worldSize, elementCount: n });
          await execute(scatter, { input, output: scattered[rank]!, dtype, reduction, tag: 1 }, transport, arithmetic);
          const whole = directAllReduce.schedule({ rank, worldSize, elementCount: count });
          await execute(
            whole,
            { input: regions[rank]!, output: regions[rank]!, dtype, reduction, tag: 2 },
            transport,
            arithmetic,
          );
        }),
      );
      return [...regions, ...scattered].map((region) => region.slice());
    };
    for (const dtype of dtypes) {
      for (const reduction of reductions) {
        // The last case has chunks of more than one block for every dtype.
        for (const [worldSize, count] of [
          [2, 1],
          [2, 67],
          [3, 67],
          [5, 67],
          [3, 30_001],
        ] as const) {
          const actual = await run(wasm, dtype, reduction, worldSize, count);
          const expected = await run(plainArithmetic(), dtype, reduction, worldSize, count);
          actual.forEach((region, i) =>
            expect(
              Buffer.compare(region, expected[i]!),
              `${reduction} ${dtype}, ${worldSize} ranks, ${count} elements, region ${i}`,
            ).toBe(0),
          );
        }
      }
    }
  },
);

test("the sum in rank order may be written over any of its operands", async () => {
  const memory = new WebAssembly.Memory({ initial: 32, maximum: 256, shared: true });
  const wasm = wasmArithmetic(await compileWasm(await detectBuild()), memory);
  const bytes = 4 * 9001; // more than two blocks
  for (const ranks of [2, 3, 4, 5]) {
    for (let own = 0; own < ranks; own++) {
      const operands = Array.from({ length: ranks }, (_, rank) => new Uint8Array(memory.buffer, rank * 2 ** 17, bytes));
      operands.forEach((region, rank) => region.set(pattern(rank, bytes, "f32")));
      const expected = new Uint8Array(bytes);
      plainArithmetic().combine("f32", "sum", [expected], operands);
      wasm.combine("f32", "sum", [operands[own]!], operands);
      expect(Buffer.compare(operands[own]!, expected), `over operand ${own} of ${ranks}`).toBe(0);
      operands.forEach((region, rank) => {
        if (rank !== own)
          expect(Buffer.compare(region, pattern(rank, bytes, "f32")), `operand ${rank} of ${ranks}`).toBe(0);
      });
    }
  }
});
