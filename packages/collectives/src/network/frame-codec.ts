import type { DType } from "@skein/tensor-core";
import { type CodecRates, codecPays } from "../wire/codec-pays.ts";
import type { CodedDType } from "../wire/coded-payload.ts";
import type { LosslessCodec } from "../wire/lossless-codec.ts";
import type { LinkCodec } from "./link.ts";

const isCoded = (dtype: DType | undefined): dtype is CodedDType => dtype === "bf16" || dtype === "f32";

/**
 * Returns the lossless codec for frames. Frames whose dtype is in `codes` are encoded if encoding makes them smaller.
 * Received coded frames are always decoded.
 */
export const frameCodec = (codec: LosslessCodec, codes: (dtype: CodedDType) => boolean): LinkCodec => ({
  encode: (bytes, dtype) => (isCoded(dtype) && codes(dtype) ? codec.encode(dtype, bytes) : undefined),
  decode: (coded, target) => codec.decode(coded, target),
});

/**
 * Returns test data for measuring the codec: nearly Gaussian numbers (sums of uniform numbers), for which the codec is
 * designed. The elements are equal in every run.
 */
const sample = (dtype: CodedDType, bytes: number): Uint8Array => {
  let state = 1;
  const uniform = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32 - 0.5;
  const values = Float32Array.from(
    { length: bytes / (dtype === "f32" ? 4 : 2) },
    () => uniform() + uniform() + uniform() + uniform(),
  );
  const whole = new Uint8Array(values.buffer);
  // The upper half of an f32 is a bf16.
  return dtype === "f32" ? whole : whole.filter((_, i) => (i & 2) === 2);
};

/** Measures the speed of the codec on this host with frames of `frameBytes`. Takes a few milliseconds. */
export const measureCodec = (
  codec: LosslessCodec,
  dtype: CodedDType,
  frameBytes: number,
  now: () => number = () => performance.now(),
): Omit<CodecRates, "bytesPerSecondOfLink"> => {
  const bytes = sample(dtype, frameBytes);
  const target = new Uint8Array(bytes.byteLength);
  const fastest = (call: () => void): number => {
    let best = Infinity;
    for (let i = 0; i < 9; i++) {
      const began = now();
      call();
      best = Math.min(best, now() - began);
    }
    return bytes.byteLength / (Math.max(best, 1e-3) / 1000);
  };
  const coded = codec.encode(dtype, bytes)!;
  return {
    ratio: bytes.byteLength / coded.byteLength,
    encodeBytesPerSecond: fastest(() => void codec.encode(dtype, bytes)),
    decodeBytesPerSecond: fastest(() => codec.decode(coded, target)),
  };
};

/**
 * Returns a function that decides whether a link should encode frames with a given dtype. The function returns true if
 * the codec, as measured on this host, shortens message times. The function always returns false if the link's speed is
 * unknown.
 */
export const codesThatPay = (
  codec: LosslessCodec,
  frameBytes: number,
  bytesPerSecondOfLink: number | undefined,
): ((dtype: CodedDType) => boolean) => {
  if (bytesPerSecondOfLink === undefined) return () => false;
  const paying = new Set<CodedDType>(
    (["bf16", "f32"] as const).filter((dtype) =>
      codecPays({ ...measureCodec(codec, dtype, frameBytes), bytesPerSecondOfLink }),
    ),
  );
  return (dtype) => paying.has(dtype);
};
