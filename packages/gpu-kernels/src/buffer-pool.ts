import { DeviceMemoryError } from "./errors.ts";
import type { Device } from "./device.ts";

const storageUsage = 0x80 | 0x04 | 0x08; // STORAGE | COPY_SRC | COPY_DST
const stagingUsage = 0x01 | 0x08; // MAP_READ | COPY_DST

export type PoolKind = "storage" | "staging";

/**
 * Buffers for arrays and read-back, used again by size. Sizes are rounded up to one of four steps per power of two, so that less
 * than a quarter is padding and a loop whose sizes vary does not collect buffers for ever.
 */
export class BufferPool {
  private readonly device: Device;
  private readonly idle = new Map<string, GPUBuffer[]>();
  private inUse = 0;
  private reserved = 0;

  constructor(device: Device) {
    this.device = device;
  }

  /** Bytes of buffers that somebody holds, padding included. */
  get bytesInUse(): number {
    return this.inUse;
  }

  /** Bytes of all buffers, idle ones included. */
  get bytesReserved(): number {
    return this.reserved;
  }

  /** A buffer of at least `bytes`. @throws DeviceMemoryError for more than one buffer may hold. */
  take(bytes: number, kind: PoolKind = "storage"): GPUBuffer {
    this.device.check();
    // The memory plan copies and binds whole steps of the alignment.
    const { bindingAlignment } = this.device.facts;
    const size = Math.ceil(poolSize(bytes) / bindingAlignment) * bindingAlignment;
    const found = this.idle.get(`${kind} ${size}`)?.pop();
    this.inUse += size;
    if (found !== undefined) return found;
    const { maxBufferBytes } = this.device.facts;
    if (size > maxBufferBytes) {
      this.inUse -= size;
      throw new DeviceMemoryError(
        `a buffer of ${size} bytes was asked for, but this device's largest is ${maxBufferBytes} (maxBufferSize); use a smaller batch or split the tensor`,
      );
    }
    this.reserved += size;
    return this.device.gpu.createBuffer({ size, usage: kind === "storage" ? storageUsage : stagingUsage });
  }

  /** Take a buffer back. Commands that were submitted before may still use it. */
  release(buffer: GPUBuffer, kind: PoolKind = "storage"): void {
    this.inUse -= buffer.size;
    const key = `${kind} ${buffer.size}`;
    const list = this.idle.get(key);
    if (list === undefined) this.idle.set(key, [buffer]);
    else list.push(buffer);
  }

  /** Give idle buffers back to the device. */
  trim(): void {
    for (const buffer of [...this.idle.values()].flat()) {
      this.reserved -= buffer.size;
      buffer.destroy();
    }
    this.idle.clear();
  }
}

/** Smallest size of a pooled buffer that holds `bytes`. */
export const poolSize = (bytes: number): number => {
  const least = 256;
  if (bytes <= least) return least;
  const step = 2 ** (Math.floor(Math.log2(bytes - 1)) - 2);
  return Math.ceil(bytes / step) * step;
};
