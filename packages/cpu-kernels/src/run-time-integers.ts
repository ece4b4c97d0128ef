import type { WasmMemory } from "@skein/tensor-core/backend";

/**
 * Read `count` i32 that lie at a byte address of the memory, for kernels whose sizes or offsets are operands. Valid
 * until the next kernel runs.
 */
export const integersAt = (memory: WasmMemory): ((address: number, count: number) => Int32Array) => {
  let words = new Int32Array(memory.buffer);
  return (address, count) => {
    // The buffer of a memory that has grown is another one.
    if (words.buffer !== memory.buffer) words = new Int32Array(memory.buffer);
    return words.subarray(address >>> 2, (address >>> 2) + count);
  };
};
