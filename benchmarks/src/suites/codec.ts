import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import {
  type CodedDType,
  crc32c,
  crc32cOf,
  losslessCodec,
  openWireKernels,
  wasmMessageMemory,
} from "@skein/collectives";
import { measure, type Summary, summarize } from "@skein/measuring";
import { makeRow, type Row } from "../report/row.ts";

const rounds = 5;
const zstd = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const peer = "zstd level 1";
/** Lengths of the benchmark's data in bytes: one frame's payload, and two sizes above the cache sizes of one core. */
const lengths = [65_536, 1_048_576, 16_777_216];
/** Standard deviations of the test values, in the range of gradients and parameters. */
const deviations = [1e-4, 0.01, 1];

/** Returns a generator of numbers in (0, 1], identical in every run (32-bit xorshift). */
const uniform = (): (() => number) => {
  let state = 0x9e3779b9;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 1) / 2 ** 32;
  };
};

/**
 * Returns samples of N(0, σ²) from the Box–Muller transform, encoded as `dtype`. bf16 values are truncated, not
 * rounded.
 */
const gaussian = (dtype: CodedDType, byteLength: number, deviation: number): Uint8Array => {
  const next = uniform();
  const count = byteLength / (dtype === "f32" ? 4 : 2);
  const values = Float32Array.from(
    { length: count },
    () => deviation * Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next()),
  );
  if (dtype === "f32") return new Uint8Array(values.buffer);
  return new Uint8Array(Uint16Array.from(new Uint32Array(values.buffer), (word) => word >>> 16).buffer);
};

const requireEqual = (what: string, restored: Uint8Array, original: Uint8Array): void => {
  if (Buffer.compare(restored, original) !== 0)
    throw new Error(`${what} does not restore ${original.byteLength} bytes`);
};

/** Measures the throughput of each function over `byteLength` bytes in GB/s. The functions take turns. */
const rates = async (calls: readonly (() => unknown)[], byteLength: number): Promise<Summary[]> => {
  const samples = calls.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < calls.length; turn++) {
      const index = (round + turn) % calls.length;
      const { median } = await measure(calls[index]!, { samples: 5 });
      samples[index]!.push(byteLength / median / 1e6);
    }
  }
  return samples.map(summarize);
};

const exact = (value: number): Summary => ({ median: value, mad: 0, n: 1 });
const label = (bytes: number): string => (bytes < 2 ** 20 ? `${bytes / 2 ** 10} KiB` : `${bytes / 2 ** 20} MiB`);

/**
 * Compares the lossless codec with zstd at level 1 on normally distributed floats, by compressed size and by speed on
 * one thread. Also compares the checksum of frames with a plain loop. Skein's functions work in shared WebAssembly
 * memory, as in the threads that handle a rank's communication.
 */
export const benchCodec = async (): Promise<Row[]> => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 65_536, shared: true });
  const messages = wasmMessageMemory(memory);
  const kernels = openWireKernels({ memory, messages });
  const [codec, checksum] = [losslessCodec(kernels), crc32cOf(kernels)];
  const rows: Row[] = [];
  for (const dtype of ["bf16", "f32"] as const) {
    for (const deviation of deviations) {
      const bytes = gaussian(dtype, 2 ** 20, deviation);
      const [coded, packed] = [codec.encode(dtype, bytes), zstdCompressSync(bytes, zstd)];
      if (coded === undefined) throw new Error(`the codec saves nothing on ${dtype} of N(0, ${deviation}²)`);
      const restored = new Uint8Array(bytes.byteLength);
      codec.decode(coded, restored);
      requireEqual("the codec", restored, bytes);
      requireEqual("zstd", zstdDecompressSync(packed), bytes);
      rows.push(
        makeRow({
          benchmark: `codec: ${dtype} of N(0, ${deviation}²), 1 MiB`,
          unit: "times smaller",
          better: "higher",
          peer,
          ours: exact(bytes.byteLength / coded.byteLength),
          theirs: exact(bytes.byteLength / packed.byteLength),
        }),
      );
    }
    for (const byteLength of lengths) {
      const bytes = gaussian(dtype, byteLength, 0.01);
      const [source, target, restored] = [
        messages.take(byteLength),
        messages.take(byteLength),
        messages.take(byteLength),
      ];
      source.set(bytes);
      const coded = codec.encode(dtype, source, target);
      if (coded === undefined) throw new Error(`the codec saves nothing on ${dtype} of ${byteLength} bytes`);
      const packed = zstdCompressSync(bytes, zstd);
      const check = (): void => {
        codec.decode(coded, restored);
        requireEqual("the codec", restored, bytes);
        requireEqual("zstd", zstdDecompressSync(packed), bytes);
      };
      check();
      const [encode, compress, decode, decompress] = await rates(
        [
          () => codec.encode(dtype, source, target),
          () => zstdCompressSync(bytes, zstd),
          () => codec.decode(coded, restored),
          () => zstdDecompressSync(packed),
        ],
        byteLength,
      );
      check();
      const row = (what: string, ours: Summary | undefined, theirs: Summary | undefined): Row =>
        makeRow({
          benchmark: `codec: ${what} ${dtype}, ${label(byteLength)}`,
          unit: "GB/s",
          better: "higher",
          peer,
          ours,
          theirs,
        });
      rows.push(row("encode", encode, compress), row("decode", decode, decompress));
      for (const region of [source, target, restored]) messages.give(region);
    }
  }
  for (const byteLength of [4096, 65_536, 1_048_576]) {
    const region = messages.take(byteLength);
    const bytes = gaussian("f32", byteLength, 1);
    region.set(bytes);
    if (checksum(region) !== crc32c(bytes)) throw new Error(`the checksums of ${byteLength} bytes differ`);
    const [ours, theirs] = await rates([() => checksum(region), () => crc32c(bytes)], byteLength);
    const benchmark = `checksum: CRC-32C of ${label(byteLength)}`;
    rows.push(makeRow({ benchmark, unit: "GB/s", better: "higher", peer: "plain loop in JavaScript", ours, theirs }));
    messages.give(region);
  }
  return rows;
};
