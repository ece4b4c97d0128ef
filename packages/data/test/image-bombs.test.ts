import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { loadImageFolder, openImageFolder } from "../src/node.ts";
import { imageDecoder } from "../src/node/image-decoder.ts";

const chunk = (type: string, data: Uint8Array): Uint8Array => {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length);
  bytes.write(type, 4, "latin1");
  bytes.set(data, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
};

/** Returns a black PNG with one bit per pixel. The file contains only `numRows` of its rows. */
const black = (rows: number, columns: number, numRows = rows): Uint8Array => {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(columns);
  header.writeUInt32BE(rows, 4);
  header[8] = 1;
  const data = deflateSync(new Uint8Array(numRows * (1 + Math.ceil(columns / 8))), { level: 1 });
  return Buffer.concat([
    Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", header),
    chunk("IDAT", data),
    chunk("IEND", new Uint8Array()),
  ]);
};

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-bombs-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const options = {
  size: [2, 2] as const,
  channels: 1 as const,
  fit: "cover" as const,
  resample: "bilinear" as const,
  testFraction: 0.5,
  skipDamaged: false,
  from: import.meta.url,
};

test("an image above the maximum number of pixels is rejected with file, pixels and limit, before it is decoded", async () => {
  for (const name of ["a", "b"]) {
    mkdirSync(join(folder, name));
    for (let i = 0; i < 8; i++) writeFileSync(join(folder, name, `${i}.png`), black(16_383, 16_383, 1));
  }
  const message =
    /[ab]\/\d\.png cannot be decoded \(it has 16383×16383 = 268402689 pixels, but the maximum is 134217728; make it smaller\); restore it, remove it, or skip such images/;
  await expect(loadImageFolder({ folder, ...options })).rejects.toThrow(message);
  await expect(loadImageFolder({ folder, ...options, resample: undefined })).rejects.toThrow(message);
  const { train } = await openImageFolder({ folder, ...options, cacheMegabytes: 1 });
  const { ImageReader } = await import("../src/node/image-reader.ts");
  await expect(new ImageReader(train, () => undefined).read(0)).rejects.toThrow(message);
});

test("large images are decoded a few at a time, and completely", async () => {
  const { decode } = imageDecoder(import.meta.url, "sharp");
  const image = black(4200, 4200);
  const samples = await Promise.all(
    Array.from({ length: 4 }, () => decode(image, { ...options, resample: undefined })),
  );
  expect(samples.map((sample) => [...sample])).toEqual(Array.from({ length: 4 }, () => [0, 0, 0, 0]));
});

test("an image that does not fit into memory is not skipped as damaged", async () => {
  for (const name of ["a", "b"]) {
    mkdirSync(join(folder, name));
    for (let i = 0; i < 8; i++) writeFileSync(join(folder, name, `${i}.png`), black(4200, 4200, 1));
  }
  const lenient = { folder, ...options, skipDamaged: true };
  const message =
    /png cannot be decoded \(the pixels of an image of 4200×4200 take 0\.2 GiB, but only 0\.1 GiB of memory are/;
  const { train } = await openImageFolder({ ...lenient, cacheMegabytes: 1 });
  const { ImageReader } = await import("../src/node/image-reader.ts");
  vi.spyOn(process, "availableMemory").mockReturnValue(2 ** 26 + 2 ** 25);
  vi.spyOn(process, "constrainedMemory").mockReturnValue(0);
  try {
    await expect(loadImageFolder(lenient)).rejects.toThrow(message);
    await expect(new ImageReader(train, () => undefined).read(0)).rejects.toThrow(message);
  } finally {
    vi.restoreAllMocks();
  }
});
