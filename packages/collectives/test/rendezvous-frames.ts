import { FrameReader } from "../src/wire/frame-reader.ts";
import { encodeHeader, type FrameType } from "../src/wire/frame.ts";

// Manually built frames of the control protocol, and damaged frames.

export const frame = (type: FrameType, payload: Uint8Array, sequence = 0): Buffer =>
  Buffer.concat([
    encodeHeader({ type, flags: 0, stream: 0, sequence, tag: 0, length: payload.byteLength }, payload),
    payload,
  ]);

/** Returns the frames in received bytes. */
export const framesIn = (bytes: Buffer): { readonly type: FrameType; readonly payload: Uint8Array }[] => {
  const frames: { type: FrameType; payload: Uint8Array }[] = [];
  new FrameReader({
    limit: () => 2 ** 20,
    target: ({ length }) => new Uint8Array(length),
    frame: ({ type }, payload) => frames.push({ type, payload }),
  }).push(bytes);
  return frames;
};

export const withLength = (bytes: Buffer, length: bigint): Buffer => {
  const changed = Buffer.from(bytes);
  changed.writeBigUInt64LE(length, 20);
  return changed;
};

export const damaged = (bytes: Buffer): Buffer => {
  const changed = Buffer.from(bytes);
  changed[changed.length - 1]! ^= 1;
  return changed;
};

export const ofVersion1 = (bytes: Buffer): Buffer => {
  const changed = Buffer.from(bytes);
  changed[4] = 1;
  return changed;
};
