import type { BufferPool } from "./buffer-pool.ts";
import type { WebGpuDevice } from "./device.ts";
import { padded } from "./host-transfer.ts";

/** Device memory of an array. */
export interface ArrayBlock {
  /**
   * The buffer, or a promise until the device confirms that it has memory for a new buffer. The promise rejects for all
   * users of the array if the device has no memory.
   */
  buffer: GPUBuffer | Promise<GPUBuffer>;
}

/**
 * Allocates a block and uploads `bytes` to it. If an idle buffer fits, the upload starts at once. Otherwise the bytes
 * are copied on the host until the device has memory. The caller may reuse its memory after this call in both cases.
 *
 * @throws DeviceMemoryError if the bytes exceed the maximum buffer size.
 */
export const uploadBytes = (device: WebGpuDevice, pool: BufferPool, bytes: Uint8Array): ArrayBlock => {
  const write = (buffer: GPUBuffer, source: Uint8Array): GPUBuffer => {
    if (source.byteLength > 0) device.gpu.queue.writeBuffer(buffer, 0, padded(source));
    return buffer;
  };
  const request = { bytes: bytes.byteLength, kind: "storage" } as const;
  const idle = pool.takeIdle(request);
  if (idle !== undefined) return { buffer: write(idle, bytes) };
  const kept = bytes.slice();
  const pending = pool.take([request]).then(([buffer]) => (block.buffer = write(buffer!, kept)));
  pending.catch(() => undefined); // a rejection is reported when the array is used
  const block: ArrayBlock = { buffer: pending };
  return block;
};

/** Releases the buffer of a block as soon as the buffer exists. */
export const releaseBlock = (pool: BufferPool, { buffer }: ArrayBlock): void => {
  if (buffer instanceof Promise)
    buffer.then(
      (made) => pool.release(made),
      () => undefined, // the allocation failed, so no buffer exists
    );
  else pool.release(buffer);
};
