import { DeviceMemoryError } from "./errors.ts";
import type { Device } from "./device.ts";

/** What a buffer is for. */
type BufferKind = "storage" | "staging" | "uniform";

export interface BufferRequest {
  /** The buffer may be larger. */
  readonly bytes: number;
  readonly kind: BufferKind;
}

/** The arrays in a pool's buffers. */
export interface ArrayOwners {
  /** Collects dropped arrays and releases their buffers. */
  readonly reclaim: () => Promise<void>;
  /** Number and bytes of live arrays, for errors. */
  readonly describeLive: () => string;
}

const usages: { readonly [kind in BufferKind]: number } = {
  storage: 0x80 | 0x04 | 0x08, // STORAGE | COPY_SRC | COPY_DST
  staging: 0x01 | 0x08, // MAP_READ | COPY_DST
  uniform: 0x40 | 0x08, // UNIFORM | COPY_DST
};

/** Buffers of one kind and size that nobody holds; the one that was given back last is taken first. */
interface IdleBuffers {
  readonly buffers: GPUBuffer[];
  /** How few there were at one time since the last look at their age: so many has nobody needed. */
  fewest: number;
}

/**
 * A buffer that nobody has needed for so many runs goes back to the device. More than a training step has, so that a
 * loop keeps what it uses.
 */
const runsPerAge = 256;

const idleKey = (usage: number, size: number): string => `${usage} ${size}`;

/**
 * Buffers for arrays, workspaces and read-back, used again by size. Sizes are rounded up to one of four steps per power
 * of two, so that less than a quarter is padding and a loop whose sizes vary does not collect buffers for ever.
 *
 * A device says only later that it had no room for a buffer. Each new one is made under an error scope of its own, and
 * nobody gets it before the device has answered: what is idle is handed out at once, and only what is new is waited
 * for. Scopes are a stack of the device, so they are opened and closed around the one call, and never held over an
 * `await`, where another task would come between.
 */
export class BufferPool {
  private readonly device: Device;
  private readonly owners: ArrayOwners | undefined;
  private readonly idle = new Map<string, IdleBuffers>();
  private inUse = 0;
  private reserved = 0;
  private runs = 0;

  /** @param owners arrays in the pool's buffers. Absent: the pool holds other buffers only, as in tests. */
  constructor(device: Device, owners?: ArrayOwners) {
    this.device = device;
    this.owners = owners;
  }

  /** Bytes of buffers that somebody holds or waits for, padding included. */
  get bytesInUse(): number {
    return this.inUse;
  }

  /** Bytes of all buffers, idle ones included. */
  get bytesReserved(): number {
    return this.reserved;
  }

  /** Bytes of the buffer that a request gets. @throws DeviceMemoryError for more than one buffer may hold. */
  sizeOf({ bytes }: BufferRequest): number {
    const { bindingAlignment, maxBufferBytes } = this.device.facts;
    // The memory plan copies and binds whole steps of the alignment.
    const size = Math.ceil(poolSize(bytes) / bindingAlignment) * bindingAlignment;
    if (size <= maxBufferBytes) return size;
    throw new DeviceMemoryError(
      `a buffer of ${size} bytes was asked for, but this device's largest is ${maxBufferBytes} (maxBufferSize); use a smaller batch or split the tensor`,
    );
  }

  /**
   * An idle buffer, at once, if there is one that fits.
   *
   * @throws DeviceMemoryError for more than one buffer may hold.
   */
  takeIdle(request: BufferRequest): GPUBuffer | undefined {
    this.device.check();
    const found = this.popIdle(usages[request.kind], this.sizeOf(request));
    this.inUse += found?.size ?? 0;
    return found;
  }

  /**
   * A buffer for each request, or none at all. If the device has no room, idle buffers are destroyed, submitted work is
   * waited for, since destroyed buffers keep their memory until then, and the device is asked again; if it still has no
   * room, dropped arrays are collected first.
   *
   * @throws DeviceMemoryError where there is no room then either, or for more than one buffer may hold.
   */
  async take(requests: readonly BufferRequest[]): Promise<GPUBuffer[]> {
    this.device.check();
    const sizes = requests.map((request) => this.sizeOf(request));
    const asked = sizes.reduce((sum, size) => sum + size, 0);
    const taken = new Array<GPUBuffer | undefined>(requests.length).fill(undefined);
    /** Take what is missing. Returns whether nothing is missing any more. */
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
        `the WebGPU device has no room for ${asked} bytes more: arrays and workspaces have ${this.inUse - asked} bytes in use, of ${others} bytes reserved${this.owners === undefined ? "" : ` (${this.owners.describeLive()})`}; free results by \`using\` or \`backend.free(array)\`, donate the state, as in jit(step, backend, { donate: [0] }), call \`release()\` of compiled functions that are no longer needed, or use a smaller batch`,
      );
    } catch (error) {
      this.inUse -= asked;
      for (const buffer of taken) if (buffer !== undefined) this.discard(buffer);
      throw error;
    }
  }

  /** A new buffer, as soon as the device has said that it has room; `undefined` where it has none. */
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
    if (found !== undefined) list!.fewest = Math.min(list!.fewest, list!.buffers.length);
    return found;
  }

  /** Take a buffer back. Commands that were submitted before may still use it. */
  release(buffer: GPUBuffer): void {
    this.inUse -= buffer.size;
    const key = idleKey(buffer.usage, buffer.size);
    const list = this.idle.get(key);
    if (list === undefined) this.idle.set(key, { buffers: [buffer], fewest: 0 });
    else list.buffers.push(buffer);
  }

  /**
   * To be called at each run. Now and then gives back to the device what no run since the last time has needed, such as
   * workspaces of released functions.
   */
  age(): void {
    if (++this.runs % runsPerAge > 0) return;
    for (const [key, list] of this.idle) {
      for (const buffer of list.buffers.splice(0, list.fewest)) this.discard(buffer);
      list.fewest = list.buffers.length;
      if (list.fewest === 0) this.idle.delete(key);
    }
  }

  /** Give idle buffers back to the device. */
  trim(): void {
    for (const { buffers } of this.idle.values()) for (const buffer of buffers) this.discard(buffer);
    this.idle.clear();
  }

  private discard(buffer: GPUBuffer): void {
    this.reserved -= buffer.size;
    buffer.destroy();
  }
}

/** Wait for all, also when one fails: what comes late would otherwise come to nobody. */
const allOf = async (pending: readonly Promise<void>[]): Promise<void> => {
  await Promise.allSettled(pending);
  await Promise.all(pending);
};

/** Smallest size of a pooled buffer that holds `bytes`. */
export const poolSize = (bytes: number): number => {
  const least = 256;
  if (bytes <= least) return least;
  const step = 2 ** (Math.floor(Math.log2(bytes - 1)) - 2);
  return Math.ceil(bytes / step) * step;
};
