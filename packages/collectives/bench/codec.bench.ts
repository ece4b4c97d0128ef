// What do checksum and lossless codec cost, and what does the codec save, beside zstd at level 1? Run: node bench/codec.bench.ts
import { zstdCompressSync, zstdDecompressSync, constants } from "node:zlib";
import { measure, printMeasurement, type Work } from "@skein/measuring";
import { wasmMessageMemory } from "../src/message-memory.ts";
import { codings, type CodedDType } from "../src/wire/coded-payload.ts";
import { crc32c } from "../src/wire/crc32c.ts";
import { crc32cOf } from "../src/wire/folded-crc32c.ts";
import { losslessCodec } from "../src/wire/lossless-codec.ts";
import { openWireKernels } from "../src/wire/wire-kernels.ts";

const memory = new WebAssembly.Memory({ initial: 1, maximum: 16_384, shared: true });
const messages = wasmMessageMemory(memory);
const kernels = openWireKernels({ memory, messages });
const [checksum, codec] = [crc32cOf(kernels), losslessCodec(kernels)];
const zstd = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/** Standard normal values of standard deviation `sigma`, as `dtype`. */
const gaussian = (dtype: CodedDType, bytes: number, sigma: number): Uint8Array => {
  const values = Float32Array.from(
    { length: bytes / codings[dtype].bytesPerElement },
    () => sigma * Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random()),
  );
  if (dtype === "f32") return new Uint8Array(values.buffer);
  return new Uint8Array(Uint16Array.from(new Uint32Array(values.buffer), (word) => word >>> 16).buffer);
};
const resident = (bytes: Uint8Array): Uint8Array => {
  const home = messages.take(bytes.length);
  home.set(bytes);
  return home;
};
const check = (what: string, a: Uint8Array, b: Uint8Array): void => {
  if (Buffer.compare(a, b) !== 0) throw new Error(`${what} does not restore its input`);
};

for (const bytes of [4096, 65_536, 1_048_576]) {
  const outside = gaussian("f32", bytes, 1);
  const inside = resident(outside);
  const work: Work = { amount: bytes, unit: "B" };
  if (checksum(inside) !== crc32c(outside) || checksum(outside) !== crc32c(outside)) throw new Error("the checksums differ");
  printMeasurement(`CRC-32C, ${bytes} B, plain loop`, await measure(() => crc32c(outside)), work);
  printMeasurement(`CRC-32C, ${bytes} B, folded, copied in`, await measure(() => checksum(outside)), work);
  printMeasurement(`CRC-32C, ${bytes} B, folded in place`, await measure(() => checksum(inside)), work);
}

for (const dtype of ["bf16", "f32"] as const) {
  for (const sigma of [1e-4, 0.01, 0.013, 1]) {
    const bytes = gaussian(dtype, 1_048_576, sigma);
    const coded = codec.encode(dtype, bytes)!;
    const packed = zstdCompressSync(bytes, zstd);
    const [codecRatio, zstdRatio] = [coded, packed].map(({ length }) => (bytes.length / length).toFixed(3));
    process.stdout.write(`${dtype}, N(0, ${sigma}²): ratio ${codecRatio}, zstd level 1 ${zstdRatio}\n`);
  }
  for (const size of [65_536, 1_048_576]) {
    const bytes = gaussian(dtype, size, 0.01);
    const [source, target, restored] = [resident(bytes), messages.take(size), messages.take(size)];
    const coded = codec.encode(dtype, source, target)!;
    codec.decode(coded, restored);
    check("the codec", restored, bytes);
    const packed = zstdCompressSync(bytes, zstd);
    check("zstd", zstdDecompressSync(packed), bytes);
    const work: Work = { amount: size, unit: "B" };
    printMeasurement(`${dtype}, ${size} B, encode`, await measure(() => codec.encode(dtype, source, target)), work);
    printMeasurement(`${dtype}, ${size} B, decode`, await measure(() => codec.decode(coded, restored)), work);
    printMeasurement(
      `${dtype}, ${size} B, encode and decode on the heap`,
      await measure(() => codec.decode(codec.encode(dtype, bytes)!, bytes)),
      work,
    );
    printMeasurement(`${dtype}, ${size} B, zstd level 1, compress`, await measure(() => zstdCompressSync(bytes, zstd)), work);
    printMeasurement(`${dtype}, ${size} B, zstd level 1, decompress`, await measure(() => zstdDecompressSync(packed)), work);
    printMeasurement(`${dtype}, ${size} B, copy`, await measure(() => restored.set(source)), work);
    for (const region of [source, target, restored]) messages.give(region);
  }
}
