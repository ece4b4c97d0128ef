import type { WasmMemory } from "@skein/tensor-core/backend";
import { OutOfMemoryError } from "./errors.ts";

const pageBytes = 65536;
/** Alignment of blocks in bytes. Every block starts on a cache line, so that two ranks never write to the same line. */
const alignment = 64;
/** Minimum number of bytes by which the memory grows. Freed blocks of different sizes can then be merged. */
const minimumGrowthBytes = 4 * 1024 * 1024;

interface Block {
  address: number;
  bytes: number;
}

/** Returns the size in bytes of a block of `bytes` bytes after alignment. */
export const alignUp = (bytes: number): number => Math.max(alignment, Math.ceil(bytes / alignment) * alignment);

/**
 * Creates the single memory that all ranks of a process share. Page 0 stays unused, so that no block has address 0.
 *
 * @example
 * ```ts
 * const memory = createSharedMemory(2 ** 24); // grows up to 16 MiB
 * console.log(memory.buffer instanceof SharedArrayBuffer); // true
 * ```
 */
export const createSharedMemory = (maximumBytes: number = 65536 * pageBytes): WasmMemory =>
  new WebAssembly.Memory({ initial: 1, maximum: Math.floor(maximumBytes / pageBytes), shared: true });

/**
 * Memory allocator of one rank: best-fit allocation in the pages of the shared memory that this arena has added.
 * `memory.grow` is atomic between threads, so arenas need no lock.
 */
export class Arena {
  readonly memory: WasmMemory;
  /** Free blocks, sorted by address; adjacent blocks are merged. */
  private free: Block[] = [];
  private readonly used = new Map<number, number>();
  /**
   * Returns a description of the current owners of memory, for the error message of a failed allocation. Default:
   * number and bytes of allocated blocks, without owners.
   */
  describeUse: () => string = () => `${this.used.size} blocks hold ${this.inUse} bytes`;
  private reserved = 0;
  private inUse = 0;
  private peak = 0;

  constructor(memory: WasmMemory) {
    this.memory = memory;
  }

  get bytesInUse(): number {
    return this.inUse;
  }

  get peakBytesInUse(): number {
    return this.peak;
  }

  /** Bytes that this arena has added to the shared memory. The arena never returns memory. */
  get bytesReserved(): number {
    return this.reserved;
  }

  allocate(bytes: number): number {
    const wanted = alignUp(bytes);
    let best = -1;
    for (let i = 0; i < this.free.length; i++) {
      const candidate = this.free[i]!;
      if (candidate.bytes >= wanted && (best < 0 || candidate.bytes < this.free[best]!.bytes)) best = i;
    }
    if (best < 0) {
      this.grow(wanted);
      return this.allocate(bytes);
    }
    const block = this.free[best]!;
    const { address } = block;
    block.address += wanted;
    block.bytes -= wanted;
    if (block.bytes === 0) this.free.splice(best, 1);
    this.used.set(address, wanted);
    this.inUse += wanted;
    this.peak = Math.max(this.peak, this.inUse);
    return address;
  }

  /** Returns a view of `length` bytes of the shared memory at `address`. */
  bytesAt(address: number, length: number): Uint8Array<SharedArrayBuffer> {
    // This thread may still have the buffer object that existed before another thread grew the memory. Growing by 0
    // pages updates the buffer.
    if (this.memory.buffer.byteLength < address + length) this.memory.grow(0);
    return new Uint8Array(this.memory.buffer as unknown as SharedArrayBuffer, address, length);
  }

  release(address: number): void {
    const bytes = this.used.get(address);
    if (bytes === undefined) return;
    this.used.delete(address);
    this.inUse -= bytes;
    this.insert({ address, bytes });
  }

  private insert(block: Block): void {
    let at = 0;
    while (at < this.free.length && this.free[at]!.address < block.address) at++;
    const before = this.free[at - 1];
    const after = this.free[at];
    const joinsBefore = before !== undefined && before.address + before.bytes === block.address;
    const joinsAfter = after !== undefined && block.address + block.bytes === after.address;
    if (joinsBefore && joinsAfter) {
      before.bytes += block.bytes + after.bytes;
      this.free.splice(at, 1);
    } else if (joinsBefore) {
      before.bytes += block.bytes;
    } else if (joinsAfter) {
      after.address = block.address;
      after.bytes += block.bytes;
    } else {
      this.free.splice(at, 0, block);
    }
  }

  private grow(wanted: number): void {
    const attempts = [Math.max(wanted, minimumGrowthBytes), wanted].map((bytes) => Math.ceil(bytes / pageBytes));
    for (const pages of attempts) {
      try {
        const address = this.memory.grow(pages) * pageBytes;
        this.reserved += pages * pageBytes;
        this.insert({ address, bytes: pages * pageBytes });
        return;
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
      }
    }
    throw new OutOfMemoryError(
      `${wanted} bytes were asked for, but ${this.describeUse()}; this rank has taken ${this.reserved} of the ${this.memory.buffer.byteLength} bytes of shared memory of all ranks of the process, which cannot grow further (4 GiB at most); free results with \`using\` or \`backend.free(array)\`, donate the state, as in jit(step, backend, { donate: [0] }), call \`release()\` of compiled functions that are no longer needed, or use a smaller batch or model, or fewer ranks per process`,
    );
  }
}
