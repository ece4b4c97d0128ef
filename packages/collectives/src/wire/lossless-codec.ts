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
 * Lossless compression of floats, for one thread. Bytes in the kernels' memory are processed in place, other bytes
 * through a copy.
 */
export interface LosslessCodec {
  /**
   * Encodes `bytes`, which contain complete elements of `dtype`, little endian.
   *
   * @param target memory for the coded bytes, at least as large as `bytes`, not overlapping them. Default: new memory.
   * @returns the written part of `target`, always shorter than `bytes`; undefined if encoding does not reduce the size,
   * in which case the bytes should be sent uncoded.
   * @throws ArgumentError if `bytes` end inside an element or `target` is too small.
   */
  encode(dtype: CodedDType, bytes: Uint8Array, target?: Uint8Array): Uint8Array | undefined;
  /**
   * Decodes `coded`.
   *
   * @param target memory of the uncoded size, not overlapping `coded`. After an error its contents are undefined.
   * @throws CodedPayloadError if `encode` cannot have written `coded` for the size of `target`.
   */
  decode(coded: Uint8Array, target: Uint8Array): void;
}

// Encoding is not attempted if the estimated number of exponents outside the window is more than this factor times the
// maximum number. The sampled share is within a tenth of the true share, so an excess of a fifth is sufficient.
const hopeless = 1.2;

const faults: readonly string[] = [
  "",
  "the number of exponents outside the window differs from its header",
  "an exponent of the window is listed as outside",
  "a bit after the last element is set",
];

/**
 * Creates a lossless codec for floats that are nearly normally distributed, such as gradients, activations and
 * parameters.
 *
 * For N(0, σ²), seven adjacent exponents, the window, cover about 97.5 % of the elements. These exponents get the
 * three-bit codes 1 to 7. Any other exponent gets code 0, and is stored as a byte. Sign and mantissa are stored
 * uncoded. A bf16 takes 11 + 8p bits and an f32 takes 27 + 8p bits, where p ≈ 0.025 is the share of elements outside
 * the window. The compression ratios are near 1.43 and 1.18. The window is chosen from a sample of 512 elements.
 * Therefore, encode a message with several scales in parts with separate windows, for example per frame.
 *
 * Coded bytes, little endian:
 * - dtype u8 (1 bf16, 2 f32), lowest exponent of the window u8, 0 u16, number of elements u32, number of exponents
 *   outside the window u32, 0 u32;
 * - for f32, the lower 16 bits of each element;
 * - for each element, a byte of sign and upper 7 bits of mantissa;
 * - 48 bytes for every 128 codes: the codes of elements l, 16 + l, …, 112 + l are the bits, lowest first, of bytes l,
 *   16 + l and 32 + l;
 * - for the remaining codes, fewer than 128: all bits 0, then all bits 1, then all bits 2, each plane padded with zeros
 *   to whole bytes;
 * - the exponents outside the window, in order.
 *
 * Cost: one pass in each direction. For 64 KiB in the kernels' memory, bf16 is encoded at 10 GB/s and decoded at 14
 * GB/s, f32 at 13 GB/s and 21 GB/s (docs/experiments.md).
 *
 * Source: ZipCCL, arXiv 2604.27844 (codes for exponents, without statistics of the complete message). Differences from
 * the source: the window is chosen from a sample; there is a format for f32; codes share vectors, because bit planes
 * would need a bit from every lane; there are no block bases, which only a decoder with many threads needs.
 */
export const losslessCodec = (kernels: WireKernels = openWireKernels()): LosslessCodec => {
  const { exports, messages, addressOf } = kernels;
  const scratch = messages.take(exports.codecScratchBytes());
  const window = { bf16: exports.windowBf16, f32: exports.windowF32 };
  const encodeElements = { bf16: exports.encodeBf16, f32: exports.encodeF32 };
  const decodeElements = { bf16: exports.decodeBf16, f32: exports.decodeF32 };

  /** Runs `work` with `bytes`, or with a copy in the kernels' memory if `bytes` are in another memory. */
  const inMemory = <T>(bytes: Uint8Array, work: (resident: Uint8Array) => T): T => {
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
      const length = inMemory(bytes, (source) => {
        if (source !== bytes) source.set(bytes);
        return inMemory(target, (written) => {
          const length = encodeResident(dtype, source, written);
          if (length !== undefined && written !== target) target.set(written.subarray(0, length));
          return length;
        });
      });
      return length === undefined ? undefined : target.subarray(0, length);
    },
    decode: (coded, target) => {
      const { dtype, first, count, numEscapes } = readCodedHeader(coded, target.byteLength);
      inMemory(coded, (source) => {
        if (source !== coded) source.set(coded);
        inMemory(target, (restored) => {
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
