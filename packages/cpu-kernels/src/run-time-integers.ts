import type { WasmMemory } from "@skein/tensor-core/backend";

/**
 * Returns a function that reads `count` i32 at a byte address, for kernels whose sizes or offsets are operands. The
 * result is valid until the next kernel runs.
 */
export const integersAt = (memory: WasmMemory): ((address: number, count: number) => Int32Array) => {
  let words = new Int32Array(memory.buffer);
  return (address, count) => {
    // The memory has a new buffer after growth.
    if (words.buffer !== memory.buffer) words = new Int32Array(memory.buffer);
    return words.subarray(address >>> 2, (address >>> 2) + count);
  };
};
