import type { WasmMemory } from "@skein/tensor-core/backend";
import { OutOfMemoryError } from "./errors.ts";

const pageBytes = 65536;
/** Every block starts on a cache line, so that ranks never write into one line together. */
const alignment = 64;
/** Minimum growth in bytes, so that blocks of many sizes have room to merge. */
const minimumGrowthBytes = 4 * 1024 * 1024;

interface Block {
  address: number;
  bytes: number;
}

/** Size of a block of `bytes` after alignment, in bytes. */
export const alignUp = (bytes: number): number => Math.max(alignment, Math.ceil(bytes / alignment) * alignment);

/** The single memory of all ranks of a process. Page 0 stays unused, so that no address is 0. */
export const createSharedMemory = (maximumBytes: number = 65536 * pageBytes): WasmMemory =>
  new WebAssembly.Memory({ initial: 1, maximum: Math.floor(maximumBytes / pageBytes), shared: true });

/**
 * A rank's part of the shared memory: best-fit allocation in pages that only this arena has added. `memory.grow` is
 * atomic between threads, so arenas need no lock.
 */
export class Arena {
  readonly memory: WasmMemory;
  /** Sorted by address; adjacent blocks are merged. */
  private free: Block[] = [];
  private readonly used = new Map<number, number>();
  /**
   * Describes the current owners of memory, for the error of a refused allocation. Default: number and bytes of blocks,
   * without owners.
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

  /** Bytes taken from the shared memory. The arena never returns these bytes. */
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

  /** Returns a view of the shared memory. */
  bytesAt(address: number, length: number): Uint8Array<SharedArrayBuffer> {
    // A thread may still have the buffer from before another thread grew the memory. Growing by 0 pages updates the
    // buffer.
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
