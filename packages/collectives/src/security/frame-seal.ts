import { createHmac, timingSafeEqual } from "node:crypto";
import { type FrameType, frameTypes } from "../wire/frame.ts";
import { WireError } from "../wire/errors.ts";

/** Bytes of the seal behind a payload. */
export const sealBytes = 16;

const empty = new Uint8Array(0);

/**
 * Seals the frames of one direction of a connection: HMAC-SHA-256, cut to 16 bytes, over the frame's place in order,
 * its type and its payload. So a sealed frame cannot be made, changed, left out, repeated or moved by who does not know
 * the job's secret. It can be read.
 *
 * Both ends count, so each frame must be sealed and opened exactly once, in order. Cost: one pass of SHA-256 over the
 * payload.
 */
export class FrameSeal {
  readonly #key: Uint8Array;
  #count = 0n;

  /** @param key 32 bytes that both ends have, of this direction alone. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** The seal of the next frame: to follow its payload. */
  seal(type: FrameType, payload: Uint8Array): Uint8Array {
    const place = new Uint8Array(9);
    new DataView(place.buffer).setBigUint64(0, this.#count++, true);
    place[8] = frameTypes[type];
    return createHmac("sha256", this.#key).update(place).update(payload).digest().subarray(0, sealBytes);
  }

  /** The next frame's payload with its seal behind it, in memory of its own. For what is small. */
  sealed(type: FrameType, payload: Uint8Array): Uint8Array {
    return Buffer.concat([payload, this.seal(type, payload)]);
  }

  /**
   * Check the next frame's seal.
   *
   * @returns its payload, a view.
   * @throws WireError `frame-seal`.
   */
  open(type: FrameType, sealed: Uint8Array): Uint8Array {
    const end = sealed.byteLength - sealBytes;
    const payload = end < 0 ? empty : sealed.subarray(0, end);
    if (end < 0 || !timingSafeEqual(sealed.subarray(end), this.seal(type, payload)))
      throw new WireError(
        "frame-seal",
        `a ${type} frame of ${sealed.byteLength} bytes does not carry the seal that is due; it was made or changed by who does not know the job's secret, so the connection cannot be trusted`,
      );
    return payload;
  }
}
