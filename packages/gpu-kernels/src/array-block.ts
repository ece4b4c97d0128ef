import type { BufferPool } from "./buffer-pool.ts";
import type { Device } from "./device.ts";
import { padded } from "./host-transfer.ts";

/** Where an array lies. */
export interface ArrayBlock {
  /**
   * A promise while the device has not said whether it has room for a new buffer; where it has none, rejected for
   * whoever uses the array.
   */
  buffer: GPUBuffer | Promise<GPUBuffer>;
}

/**
 * A block with these bytes. Where an idle buffer fits they are on their way at once. Else they are kept on the host
 * until the device has made room, if it can: the caller's memory is its own again after this call.
 *
 * @throws DeviceMemoryError for more than one buffer may hold.
 */
export const uploadBytes = (device: Device, pool: BufferPool, bytes: Uint8Array): ArrayBlock => {
  const write = (buffer: GPUBuffer, source: Uint8Array): GPUBuffer => {
    if (source.byteLength > 0) device.gpu.queue.writeBuffer(buffer, 0, padded(source));
    return buffer;
  };
  const request = { bytes: bytes.byteLength, kind: "storage" } as const;
  const idle = pool.takeIdle(request);
  if (idle !== undefined) return { buffer: write(idle, bytes) };
  const kept = bytes.slice();
  const pending = pool.take([request]).then(([buffer]) => (block.buffer = write(buffer!, kept)));
  pending.catch(() => undefined); // told where the array is used
  const block: ArrayBlock = { buffer: pending };
  return block;
};

/** Give a block's buffer back, once it is there. */
export const releaseBlock = (pool: BufferPool, { buffer }: ArrayBlock): void => {
  if (buffer instanceof Promise)
    buffer.then(
      (made) => pool.release(made),
      () => undefined, // there is none
    );
  else pool.release(buffer);
};
