/** How messages are cut and how far a sender may run ahead. Both ends must have the same. */
export interface Flow {
  /** Payload of every frame of a message but its last. */
  readonly frameBytes: number;
  /** What a sender may have in flight per lane that its receiver has not asked for. At least a frame. */
  readonly earlyBytes: number;
}

/**
 * Frames of 512 KiB: an urgent message waits for 0.4 ms at 10 Gbit/s. Measured on loopback, all-reduce of 1 to 4 MiB
 * takes a tenth longer by frames of 256 KiB, and no less by 1 MiB (docs/experiments.md). Two frames may come unasked,
 * so that a sender need not wait for a round trip before every message; more gained nothing, and 64 peers with four
 * lanes may each fill it.
 */
export const defaultFlow: Flow = { frameBytes: 524_288, earlyBytes: 1_048_576 };

/**
 * An empty frame is charged as this much, for the header and the entry that keep it: a bound on bytes then bounds
 * frames as well.
 */
const leastCharge = 64;

/** Frames that a message is cut into: one at least. */
export const frameCount = (byteLength: number, { frameBytes }: Flow): number =>
  Math.max(1, Math.ceil(byteLength / frameBytes));

/** What a frame with `byteLength` bytes of a message, before coding, takes of the sender's credit. */
export const frameCharge = (byteLength: number): number => Math.max(byteLength, leastCharge);

/** What all frames of a message take together. */
export const messageCharge = (byteLength: number, flow: Flow): number => {
  const rest = byteLength % flow.frameBytes;
  return byteLength - rest + (rest > 0 || byteLength === 0 ? frameCharge(rest) : 0);
};
