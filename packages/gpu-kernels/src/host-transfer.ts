import type { WebGpuDevice } from "./device.ts";

/** Allocator of host memory for operands and results of collectives, which communicators read and write. */
export interface HostMemory {
  allocate(bytes: number): Uint8Array;
  release(bytes: Uint8Array): void;
}

/** Allocator of ordinary memory of this thread, for communicators that accept any memory. */
export const plainHostMemory: HostMemory = {
  allocate: (bytes) => new Uint8Array(bytes),
  release: () => undefined,
};

/** Copies a staging buffer to `target` after the commands submitted so far have filled the buffer. */
export const readBuffer = async (device: WebGpuDevice, staging: GPUBuffer, target: Uint8Array): Promise<void> => {
  if (target.byteLength === 0) return;
  const bytes = Math.ceil(target.byteLength / 4) * 4;
  try {
    await device.settle(staging.mapAsync(1, 0, bytes)); // MAP_READ
    target.set(new Uint8Array(staging.getMappedRange(0, bytes), 0, target.byteLength));
  } finally {
    // a failure may occur after the mapping, and the buffer will be reused
    if (staging.mapState !== "unmapped") staging.unmap();
  }
};

/** Returns bytes padded to a multiple of 4, as `writeBuffer` requires. */
export const padded = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => {
  if (bytes.byteLength % 4 === 0 && bytes.buffer instanceof ArrayBuffer) return bytes as Uint8Array<ArrayBuffer>;
  const copy = new Uint8Array(Math.ceil(bytes.byteLength / 4) * 4);
  copy.set(bytes);
  return copy;
};
