import { ArgumentError } from "@skein/tensor-core";
import type { WasmMemory } from "@skein/tensor-core/backend";

/** Allocator for received messages and for scratch memory of schedules. Used by one thread. */
export interface MessageMemory {
  /** Allocates `byteLength` bytes with undefined contents. */
  take(byteLength: number): Uint8Array;
  /** Frees an array returned by `take`. */
  give(bytes: Uint8Array): void;
}

const pageBytes = 65_536;
/**
 * Minimum growth of the memory, in bytes. Growing takes microseconds, and training allocates the same few sizes
 * repeatedly.
 */
const growthBytes = 2 ** 20;
const smallestBytes = 256;

/**
 * Rounds a size up to one of four sizes per power of two, so that at most a quarter is wasted and freed blocks can be
 * reused.
 */
export const sizeClass = (byteLength: number): number => {
  const step = Math.max(smallestBytes, 2 ** (Math.floor(Math.log2(Math.max(1, byteLength - 1))) - 2));
  return Math.max(smallestBytes, Math.ceil(byteLength / step) * step);
};

/**
 * Returns an allocator in the world's WebAssembly memory, which reductions can read. Freed blocks are kept by size and
 * reused; pages are never released. Growing the memory is atomic between threads, so every thread has a separate pool
 * without a lock.
 */
export const wasmMessageMemory = (memory: WasmMemory): MessageMemory => {
  const free = new Map<number, number[]>();
  let next = 0;
  let end = 0;

  const carve = (bytes: number): number => {
    if (end - next < bytes) {
      const pages = Math.ceil(Math.max(bytes, growthBytes) / pageBytes);
      let page: number;
      try {
        page = memory.grow(pages);
      } catch {
        throw new ArgumentError(
          `${bytes} bytes for messages do not fit in the world's memory of ${memory.buffer.byteLength} bytes, which cannot grow that far (the limit is 4 GiB for all ranks of a process); use smaller buckets, or fewer ranks per process`,
        );
      }
      next = page * pageBytes;
      end = next + pages * pageBytes;
    }
    next += bytes;
    return next - bytes;
  };

  return {
    take: (byteLength) => {
      const bytes = sizeClass(byteLength);
      const address = free.get(bytes)?.pop() ?? carve(bytes);
      // A thread may still see the old buffer after another thread grew the memory. Growing by 0 pages updates the
      // buffer.
      if (memory.buffer.byteLength < address + byteLength) memory.grow(0);
      return new Uint8Array(memory.buffer, address, byteLength);
    },
    give: ({ byteOffset, byteLength }) => {
      const bytes = sizeClass(byteLength);
      const list = free.get(bytes);
      if (list === undefined) free.set(bytes, [byteOffset]);
      else list.push(byteOffset);
    },
  };
};

/** Returns an allocator on the JavaScript heap, for worlds without WebAssembly. */
export const heapMessageMemory = (): MessageMemory => ({
  take: (byteLength) => new Uint8Array(byteLength),
  give: () => undefined,
});
