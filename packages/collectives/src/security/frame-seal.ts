import { createHmac, timingSafeEqual } from "node:crypto";
import { type FrameType, frameTypes } from "../wire/frame.ts";
import { WireError } from "../wire/errors.ts";

/** Size of the seal after a payload, in bytes. */
export const sealBytes = 16;

const empty = new Uint8Array(0);

/**
 * Seals the frames of one direction of a connection: HMAC-SHA-256, truncated to 16 bytes, over the frame's number, type
 * and payload. Without the job's secret, a sealed frame can be read, but not forged, changed, omitted, repeated or
 * reordered.
 *
 * Both ends count frames, so each frame must be sealed and opened exactly once, in order. Cost: one pass of SHA-256
 * over the payload.
 */
export class FrameSeal {
  readonly #key: Uint8Array;
  #count = 0n;

  /**
   * Creates the seals of one direction of a connection.
   *
   * @param key 32 bytes that the two ends share and use for this direction only.
   */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Returns the seal of the next frame, to be sent after its payload. */
  seal(type: FrameType, payload: Uint8Array): Uint8Array {
    const framePrefix = new Uint8Array(9);
    new DataView(framePrefix.buffer).setBigUint64(0, this.#count++, true);
    framePrefix[8] = frameTypes[type];
    return createHmac("sha256", this.#key).update(framePrefix).update(payload).digest().subarray(0, sealBytes);
  }

  /**
   * Returns the payload of the next frame followed by its seal, in new memory. Use only for small payloads, because the
   * payload is copied.
   */
  sealed(type: FrameType, payload: Uint8Array): Uint8Array {
    return Buffer.concat([payload, this.seal(type, payload)]);
  }

  /**
   * Checks the seal of the next frame.
   *
   * @returns the payload, a view of `sealed`.
   * @throws WireError `frame-seal` if the seal is wrong.
   */
  open(type: FrameType, sealed: Uint8Array): Uint8Array {
    const end = sealed.byteLength - sealBytes;
    const payload = end < 0 ? empty : sealed.subarray(0, end);
    if (end < 0 || !timingSafeEqual(sealed.subarray(end), this.seal(type, payload)))
      throw new WireError(
        "frame-seal",
        `a ${type} frame of ${sealed.byteLength} bytes does not carry the expected seal; it was forged or changed without the job's secret, so the connection cannot be trusted`,
      );
    return payload;
  }
}
