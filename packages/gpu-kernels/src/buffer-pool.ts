import { DeviceMemoryError } from "./errors.ts";
import type { WebGpuDevice } from "./device.ts";

/** Purpose of a buffer. Determines the buffer's usage flags. */
type BufferKind = "storage" | "staging" | "uniform";

export interface BufferRequest {
  /** Minimum size of the buffer in bytes; the buffer may be larger. */
  readonly bytes: number;
  readonly kind: BufferKind;
}

/** Tracker of the arrays in a pool's buffers. */
export interface ArrayOwners {
  /** Collects unreachable arrays and releases their buffers. */
  readonly reclaim: () => Promise<void>;
  /** Describes the number and bytes of live arrays, for error messages. */
  readonly describeLive: () => string;
}

const usages: { readonly [kind in BufferKind]: number } = {
  storage: 0x80 | 0x04 | 0x08, // STORAGE | COPY_SRC | COPY_DST
  staging: 0x01 | 0x08, // MAP_READ | COPY_DST
  uniform: 0x40 | 0x08, // UNIFORM | COPY_DST
};

/** Idle buffers of one kind and size. The most recently released buffer is reused first. */
interface IdleBuffers {
  readonly buffers: GPUBuffer[];
  /**
   * Minimum length of `buffers` since the last check for unused buffers, that is, the number of buffers that no run has
   * needed since then.
   */
  minIdle: number;
}

/**
 * Number of runs between checks for unused buffers, which are returned to the device. Larger than the number of runs
 * per training step, so that a loop keeps the buffers that it uses.
 */
const runsPerAge = 256;

const idleKey = (usage: number, size: number): string => `${usage} ${size}`;

/**
 * Pool of buffers for arrays, workspaces and read-back, reused by size. Sizes are rounded up to one of four steps per
 * power of two, so that less than a quarter is padding, and a loop with varying sizes does not accumulate buffers
 * without bound.
 *
 * A device reports out-of-memory only asynchronously. Each new buffer is created in its own error scope, and is not
 * used before the device has confirmed the allocation. Idle buffers are returned at once; only new buffers are awaited.
 * Scopes form a stack per device. Therefore a scope is opened and closed around a single call, and never held over an
 * `await`, during which another task could use the stack.
 */
export class BufferPool {
  private readonly device: WebGpuDevice;
  private readonly owners: ArrayOwners | undefined;
  private readonly idle = new Map<string, IdleBuffers>();
  private inUse = 0;
  private reserved = 0;
  private runs = 0;

  /**
   * Creates an empty pool.
   *
   * @param owners Tracker of the arrays in the pool's buffers. Absent: arrays are not tracked, as in tests.
   */
  constructor(device: WebGpuDevice, owners?: ArrayOwners) {
    this.device = device;
    this.owners = owners;
  }

  /** Bytes of buffers that are in use or being allocated, including padding. */
  get bytesInUse(): number {
    return this.inUse;
  }

  /** Bytes of all buffers of the pool, including idle buffers and padding. */
  get bytesReserved(): number {
    return this.reserved;
  }

  /**
   * Returns the size in bytes of the buffer for a request.
   *
   * @throws DeviceMemoryError if the request exceeds the maximum buffer size.
   */
  sizeOf({ bytes }: BufferRequest): number {
    const { bindingAlignment, maxBufferBytes } = this.device.facts;
    // The memory plan copies and binds complete multiples of the alignment.
    const size = Math.ceil(poolSize(bytes) / bindingAlignment) * bindingAlignment;
    if (size <= maxBufferBytes) return size;
    throw new DeviceMemoryError(
      `a buffer of ${size} bytes was requested, but the maximum of this device is ${maxBufferBytes} (maxBufferSize); use a smaller batch or split the tensor`,
    );
  }

  /**
   * Returns an idle buffer synchronously, or undefined if no idle buffer fits.
   *
   * @throws DeviceMemoryError if the request exceeds the maximum buffer size.
   */
  takeIdle(request: BufferRequest): GPUBuffer | undefined {
    this.device.check();
    const found = this.popIdle(usages[request.kind], this.sizeOf(request));
    this.inUse += found?.size ?? 0;
    return found;
  }

  /**
   * Takes a buffer for each request, or takes none of them. If the device has no memory, idle buffers are destroyed,
   * and submitted work is awaited (destroyed buffers keep their memory until then) before the next attempt. If this
   * attempt also fails, dropped arrays are collected before a last attempt.
   *
   * @throws DeviceMemoryError if the last attempt fails, or a request exceeds the maximum buffer size.
   */
  async take(requests: readonly BufferRequest[]): Promise<GPUBuffer[]> {
    this.device.check();
    const sizes = requests.map((request) => this.sizeOf(request));
    const asked = sizes.reduce((sum, size) => sum + size, 0);
    const taken = new Array<GPUBuffer | undefined>(requests.length).fill(undefined);
    /**
     * Takes idle buffers, or creates buffers, for the requests without a buffer. Resolves with whether every request
     * has a buffer.
     */
    const fill = async (): Promise<boolean> => {
      const made: Promise<void>[] = [];
      for (const [i, { kind }] of requests.entries()) {
        taken[i] ??= this.popIdle(usages[kind], sizes[i]!);
        if (taken[i] === undefined)
          made.push(this.make(usages[kind], sizes[i]!).then((buffer) => void (taken[i] = buffer)));
      }
      if (made.length > 0) await allOf(made);
      return taken.every((buffer) => buffer !== undefined);
    };
    this.inUse += asked;
    try {
      if (await fill()) return taken as GPUBuffer[];
      for (const isLast of [false, true]) {
        if (isLast) await this.owners?.reclaim();
        this.trim();
        await this.device.settle(this.device.gpu.queue.onSubmittedWorkDone());
        if (await fill()) return taken as GPUBuffer[];
      }
      const others = this.reserved - taken.reduce((sum, buffer) => sum + (buffer?.size ?? 0), 0);
      throw new DeviceMemoryError(
        `the WebGPU device has no memory for ${asked} more bytes: arrays and workspaces have ${this.inUse - asked} bytes in use, of ${others} bytes reserved${this.owners === undefined ? "" : ` (${this.owners.describeLive()})`}; free results with \`using\` or \`backend.free(array)\`, donate the state, as in jit(step, backend, { donate: [0] }), call \`release()\` of compiled functions that are no longer needed, or use a smaller batch`,
      );
    } catch (error) {
      this.inUse -= asked;
      for (const buffer of taken) if (buffer !== undefined) this.discard(buffer);
      throw error;
    }
  }

  /**
   * Creates a buffer. Resolves when the device has confirmed the allocation, with `undefined` if the device has no
   * memory.
   */
  private async make(usage: number, size: number): Promise<GPUBuffer | undefined> {
    const { gpu } = this.device;
    gpu.pushErrorScope("out-of-memory");
    const buffer = gpu.createBuffer({ size, usage });
    const refusal = gpu.popErrorScope();
    this.reserved += size;
    let sound = false;
    try {
      sound = (await this.device.settle(refusal)) === null;
    } finally {
      if (!sound) this.discard(buffer);
    }
    return sound ? buffer : undefined;
  }

  private popIdle(usage: number, size: number): GPUBuffer | undefined {
    const list = this.idle.get(idleKey(usage, size));
    const found = list?.buffers.pop();
    if (found !== undefined) list!.minIdle = Math.min(list!.minIdle, list!.buffers.length);
    return found;
  }

  /** Returns a buffer to the pool. Commands that were submitted earlier may still use the buffer. */
  release(buffer: GPUBuffer): void {
    this.inUse -= buffer.size;
    const key = idleKey(buffer.usage, buffer.size);
    const list = this.idle.get(key);
    if (list === undefined) this.idle.set(key, { buffers: [buffer], minIdle: 0 });
    else list.buffers.push(buffer);
  }

  /**
   * Counts a run. Every `runsPerAge` runs, releases to the device the buffers that no run has used since the last
   * check, such as workspaces of released functions.
   */
  age(): void {
    if (++this.runs % runsPerAge > 0) return;
    for (const [key, list] of this.idle) {
      for (const buffer of list.buffers.splice(0, list.minIdle)) this.discard(buffer);
      list.minIdle = list.buffers.length;
      if (list.minIdle === 0) this.idle.delete(key);
    }
  }

  /** Returns all idle buffers to the device. */
  trim(): void {
    for (const { buffers } of this.idle.values()) for (const buffer of buffers) this.discard(buffer);
    this.idle.clear();
  }

  private discard(buffer: GPUBuffer): void {
    this.reserved -= buffer.size;
    buffer.destroy();
  }
}

/** Waits for all promises, even if one fails. Otherwise buffers that arrive after a failure would be lost. */
const allOf = async (pending: readonly Promise<void>[]): Promise<void> => {
  await Promise.allSettled(pending);
  await Promise.all(pending);
};

/** Returns the size of the smallest pooled buffer that holds `bytes` bytes. */
export const poolSize = (bytes: number): number => {
  const least = 256;
  if (bytes <= least) return least;
  const step = 2 ** (Math.floor(Math.log2(bytes - 1)) - 2);
  return Math.ceil(bytes / step) * step;
};
