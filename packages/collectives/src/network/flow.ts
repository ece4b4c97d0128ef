/** Frame size and initial credit of a link's messages. Both ends must have the same values. */
export interface Flow {
  /** Payload size of every frame of a message except the last, in bytes. */
  readonly frameBytes: number;
  /** Maximum number of bytes per lane that a sender may send before the receiver requests them. At least one frame. */
  readonly earlyBytes: number;
}

/**
 * Default flow. Frames of 512 KiB: an urgent message waits for 0.4 ms at 10 Gbit/s. Measured on loopback, an all-reduce
 * of 1 to 4 MiB takes 10% longer with frames of 256 KiB, and the same time with 1 MiB (docs/experiments.md). Two frames
 * may be sent before they are requested, so that a sender need not wait for a round trip before every message. A higher
 * limit did not reduce times, and 64 peers with four lanes may each use the full amount.
 */
export const defaultFlow: Flow = { frameBytes: 524_288, earlyBytes: 1_048_576 };

/**
 * Minimum credit charged per frame, in bytes, to account for the frame's header and queue entry. A limit on bytes then
 * also limits the number of empty frames.
 */
const minCharge = 64;

/** Returns the number of frames of a message, at least one. */
export const frameCount = (byteLength: number, { frameBytes }: Flow): number =>
  Math.max(1, Math.ceil(byteLength / frameBytes));

/**
 * Returns the credit charged for one frame, in bytes. `byteLength` is the size of the frame's payload before
 * compression.
 */
export const frameCharge = (byteLength: number): number => Math.max(byteLength, minCharge);

/** Returns the credit charged for all frames of a message, in bytes. */
export const messageCharge = (byteLength: number, flow: Flow): number => {
  const rest = byteLength % flow.frameBytes;
  return byteLength - rest + (rest > 0 || byteLength === 0 ? frameCharge(rest) : 0);
};
