import { ArgumentError } from "@skein/tensor-core";
import {
  type CodedDType,
  type CodedHeader,
  codedBytes,
  codedHeaderBytes,
  codings,
  readCodedHeader,
  writeCodedHeader,
} from "./coded-payload.ts";
import { CodedPayloadError } from "./errors.ts";
import { openWireKernels, type WireKernels } from "./wire-kernels.ts";

/**
 * Codes floats without loss, for one thread. Bytes in the kernels' memory are worked on in place, others through a
 * copy.
 */
export interface LosslessCodec {
  /**
   * Code `bytes`, whole elements of `dtype`, little endian.
   *
   * @param target where the coded bytes go; at least as large as `bytes`, not overlapping them. Default: new memory.
   * @returns the part of `target` that was written, always shorter than `bytes`; undefined when coding saves nothing:
   * send them as they are.
   * @throws ArgumentError when `bytes` end inside an element or `target` is too small.
   */
  encode(dtype: CodedDType, bytes: Uint8Array, target?: Uint8Array): Uint8Array | undefined;
  /**
   * Restore what was coded.
   *
   * @param target as long as the original, not overlapping `coded`. After an error its contents are undefined.
   * @throws CodedPayloadError when `coded` is not what `encode` writes for so many bytes.
   */
  decode(coded: Uint8Array, target: Uint8Array): void;
}

// The share outside the window, as the sample has it, is within a tenth of the true one; a fifth too many are enough to
// give up.
const hopeless = 1.2;

const faults: readonly string[] = [
  "",
  "it has more or fewer exponents outside the window than its header says",
  "an exponent of the window stands among those outside",
  "a bit behind the last element is set",
];

/**
 * Make a lossless codec for floats that are nearly normally distributed, as gradients, activations and parameters are.
 *
 * Of N(0, σ²) seven neighbouring exponents hold some 97.5 %. They get codes 1 to 7 of three bits; the others get code 0
 * and a byte each; sign and mantissa go as they are. A bf16 takes 11 + 8p bits, an f32 27 + 8p, where p ≈ 0.025 is the
 * share outside the window: ratios near 1.43 and 1.18. The window is chosen from 512 elements, so a message of several
 * scales is better coded in parts, each with a window of its own: per frame, say.
 *
 * Coded bytes, little endian:
 * - dtype u8 (1 bf16, 2 f32), lowest exponent of the window u8, 0 u16, elements u32, exponents outside the window u32,
 *   0 u32;
 * - of f32 the lower 16 bits of each element;
 * - of each a byte of sign and upper 7 bits of mantissa;
 * - 48 bytes for every 128 codes: those of elements l, 16 + l, …, 112 + l are the bits, lowest first, of bytes l, 16 +
 *   l and 32 + l;
 * - of the last fewer than 128 codes bits 0, then bits 1, then bits 2, each plane filled up to whole bytes with zeros;
 * - the exponents outside the window, in order.
 *
 * Cost: one pass each way. 64 KiB in the kernels' memory: bf16 encoded at 10, decoded at 14 GB/s, f32 at 13 and 21
 * (docs/experiments.md).
 *
 * Source: ZipCCL, arXiv 2604.27844 (exponents coded without statistics of the whole). Own are the window from a sample,
 * the form for f32, codes that share vectors where bit planes need a bit gathered from every lane, and that blocks have
 * no bases, which only a decoder on many threads needs.
 */
export const losslessCodec = (kernels: WireKernels = openWireKernels()): LosslessCodec => {
  const { exports, messages, addressOf } = kernels;
  const scratch = messages.take(exports.codecScratchBytes());
  const window = { bf16: exports.windowBf16, f32: exports.windowF32 };
  const encodeElements = { bf16: exports.encodeBf16, f32: exports.encodeF32 };
  const decodeElements = { bf16: exports.decodeBf16, f32: exports.decodeF32 };

  /** Run `work` with memory of the kernels' in place of `bytes` where these lie elsewhere. */
  const inHome = <T>(bytes: Uint8Array, work: (resident: Uint8Array) => T): T => {
    if (addressOf(bytes) !== undefined) return work(bytes);
    const copy = messages.take(bytes.byteLength);
    try {
      return work(copy);
    } finally {
      messages.give(copy);
    }
  };

  const encodeResident = (dtype: CodedDType, source: Uint8Array, target: Uint8Array): number | undefined => {
    const count = source.byteLength / codings[dtype].bytesPerElement;
    const maxEscapes = source.byteLength - 1 - codedBytes({ dtype, count, numEscapes: 0 });
    if (maxEscapes < 0) return undefined;
    const chosen = window[dtype](source.byteOffset, count, scratch.byteOffset);
    const [first, outside] = [chosen & 0xff, (chosen >>> 8) / exports.sampleOf(count)];
    if (outside * count > hopeless * maxEscapes) return undefined;
    const numEscapes = encodeElements[dtype](
      source.byteOffset,
      count,
      first,
      target.byteOffset + codedHeaderBytes,
      maxEscapes,
      scratch.byteOffset,
    );
    if (numEscapes < 0) return undefined;
    const header: CodedHeader = { dtype, first, count, numEscapes };
    writeCodedHeader(target, header);
    return codedBytes(header);
  };

  return {
    encode: (dtype, bytes, target = new Uint8Array(bytes.byteLength)) => {
      if (bytes.byteLength % codings[dtype].bytesPerElement !== 0)
        throw new ArgumentError(
          `${bytes.byteLength} bytes end inside a ${dtype} element; pass whole elements to the codec`,
        );
      if (target.byteLength < bytes.byteLength)
        throw new ArgumentError(
          `a target of ${target.byteLength} bytes may be too small for ${bytes.byteLength} bytes, coded; make it as large as the source`,
        );
      const length = inHome(bytes, (source) => {
        if (source !== bytes) source.set(bytes);
        return inHome(target, (written) => {
          const length = encodeResident(dtype, source, written);
          if (length !== undefined && written !== target) target.set(written.subarray(0, length));
          return length;
        });
      });
      return length === undefined ? undefined : target.subarray(0, length);
    },
    decode: (coded, target) => {
      const { dtype, first, count, numEscapes } = readCodedHeader(coded, target.byteLength);
      inHome(coded, (source) => {
        if (source !== coded) source.set(coded);
        inHome(target, (restored) => {
          const fault = decodeElements[dtype](
            source.byteOffset + codedHeaderBytes,
            count,
            first,
            restored.byteOffset,
            numEscapes,
            scratch.byteOffset,
          );
          if (fault !== 0) throw new CodedPayloadError(faults[fault]!);
          if (restored !== target) target.set(restored);
        });
      });
    },
  };
};
