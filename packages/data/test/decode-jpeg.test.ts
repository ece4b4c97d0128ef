import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Decoding } from "../src/encoded-records.ts";
import { gatherBatch } from "../src/index.ts";
import { imageDecoder } from "../src/node/image-decoder.ts";
import { loadImageFolder, openImageFolder, Prefetcher, readBatch } from "../src/node.ts";

const [bySharp, ours] = (["sharp", "napi-rs"] as const).map((name) => imageDecoder(import.meta.url, name));
const sample = (name: string): Buffer => readFileSync(join(import.meta.dirname, "images", name));

/** Returns an image of waves, which changes under each rotation and reflection. */
const waves = async (rows: number, columns: number): Promise<Buffer> => {
  const pixels = Uint8Array.from({ length: rows * columns * 3 }, (_, i) => {
    const [row, column, channel] = [Math.floor(i / 3 / columns), Math.floor(i / 3) % columns, i % 3];
    return 128 + 60 * Math.sin((2 * row) / rows + channel) + 60 * Math.sin((3 * column) / columns);
  });
  const image = sharp(pixels, { raw: { width: columns, height: rows, channels: 3 } });
  return image.jpeg({ quality: 95, chromaSubsampling: "4:4:4" }).toBuffer();
};

/** Adds an EXIF segment with an orientation to a JPEG. */
const held = (jpeg: Buffer, orientation: number, byteOrder: "II" | "MM" = "II"): Buffer => {
  const isLittle = byteOrder === "II";
  const exif = Buffer.alloc(36);
  exif.writeUInt16BE(0xffe1, 0);
  exif.writeUInt16BE(34, 2);
  exif.write(`Exif\0\0${byteOrder}`, 4, "latin1");
  const put = (at: number, value: number, bytes: 2 | 4): number =>
    isLittle ? exif.writeUIntLE(value, at, bytes) : exif.writeUIntBE(value, at, bytes);
  put(12, 42, 2);
  put(14, 8, 4);
  put(18, 1, 2);
  put(20, 0x0112, 2);
  put(22, 3, 2);
  put(24, 1, 4);
  put(28, orientation, 2);
  return Buffer.concat([jpeg.subarray(0, 2), exif, jpeg.subarray(2)]);
};

const distance = (one: Uint8Array, other: Uint8Array): number => {
  expect(one).toHaveLength(other.length);
  return one.reduce((sum, value, i) => sum + Math.abs(value - other[i]!), 0) / one.length;
};

describe("ordinary JPEGs", () => {
  test("are rotated, cropped and resized as by sharp, up to rounding and fractions of a pixel", async () => {
    const jpeg = await waves(240, 180);
    for (const fit of ["cover", "contain", "stretch"] as const)
      for (const byteOrder of ["II", "MM"] as const)
        for (let orientation = 1; orientation <= 8; orientation++) {
          const bytes = held(jpeg, orientation, byteOrder);
          const decoding: Decoding = { size: [30, 40], channels: 3, fit };
          const [wanted, found] = [await bySharp!.decode(bytes, decoding), await ours!.decode(bytes, decoding)];
          expect(distance(wanted, found), `${fit} ${orientation}`).toBeLessThan(2.5);
        }
  });

  test("that differ only in orientation are the same image, pixel by pixel", async () => {
    const jpeg = await waves(33, 47);
    const decoding: Decoding = { size: [20, 20], channels: 3, fit: "stretch" };
    const plain = await ours!.decode(jpeg, decoding);
    const mirrored = await ours!.decode(held(jpeg, 2), decoding);
    const at = (pixels: Uint8Array, row: number, column: number): Uint8Array =>
      pixels.subarray((row * 20 + column) * 3, (row * 20 + column) * 3 + 3);
    for (let row = 0; row < 20; row++)
      for (let column = 0; column < 20; column++)
        expect(at(mirrored, row, column)).toEqual(at(plain, row, 19 - column));
  });

  test("in gray are gray, or have three equal channels", async () => {
    const grey = sample("grey.jpg");
    const [one, three] = [
      await ours!.decode(grey, { size: [16, 24], channels: 1, fit: "cover" }),
      await ours!.decode(grey, { size: [16, 24], channels: 3, fit: "cover" }),
    ];
    expect(one).toHaveLength(16 * 24);
    expect(three).toEqual(Uint8Array.from({ length: 3 * one.length }, (_, i) => one[Math.floor(i / 3)]!));
    expect([one[0]! > 250, one[23]! < 5]).toEqual([true, true]);
  });
});

describe("other images are decoded by sharp", () => {
  const decoding: Decoding = { size: [7, 9], channels: 3, fit: "cover" };

  test("CMYK, other formats, colors decoded as gray", async () => {
    for (const [bytes, channels] of [
      [sample("cmyk.jpg"), 3],
      [sample("plain.png"), 3],
      [sample("palette-animated.gif"), 3],
      [sample("plain.jpg"), 1],
    ] as const)
      expect(await ours!.decode(bytes, { ...decoding, channels })).toEqual(
        await bySharp!.decode(bytes, { ...decoding, channels }),
      );
  });

  test("errors of damaged images come from sharp", async () => {
    const jpeg = await waves(40, 50);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 2, max: jpeg.length - 1 }), async (end) => {
        const cut = jpeg.subarray(0, end);
        const told = async (decode: Promise<Uint8Array>): Promise<string> =>
          decode.then(
            (pixels) => Buffer.from(pixels).toString("base64"),
            (error: Error) => error.message,
          );
        expect(await told(ours!.decode(cut, decoding))).toBe(await told(bySharp!.decode(cut, decoding)));
      }),
      { numRuns: 30 },
    );
  });
});

describe("folders of JPEGs", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-jpegs-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const options = {
    folder,
    size: [8, 8],
    channels: 3,
    fit: "cover",
    testFraction: 0.3,
    skipDamaged: false,
    decoder: "napi-rs",
    from: import.meta.url,
  } as const;
  beforeAll(async () => {
    for (const part of ["train", "test"])
      for (const [i, name] of ["cat", "dog"].entries()) {
        mkdirSync(join(folder, part, name), { recursive: true });
        for (let image = 0; image < 8; image++)
          writeFileSync(join(folder, part, name, `${image}.jpg`), await waves(40 + 3 * image, 50 + i));
      }
  });

  test("have the same pixels decoded before or during training, and name the decoder", async () => {
    const eager = await loadImageFolder(options);
    const lazy = await openImageFolder({ ...options, cacheMegabytes: 0 });
    expect(eager.remarks.join("\n")).toContain("@napi-rs/image");
    expect(lazy.train.images.decoder).toMatch(/^@napi-rs\/image \d.*, sharp \d/);
    const all = Array.from({ length: eager.train.count }, (_, i) => i);
    const [one, other] = [gatherBatch(eager.train, all), await readBatch(lazy.train, all)];
    expect(other["inputs"]!.toNumbers()).toEqual(one["inputs"]!.toNumbers());
    expect(other["labels"]!.toNumbers()).toEqual(one["labels"]!.toNumbers());
  });

  test("can be closed while their images are decoded", async () => {
    const { train } = await openImageFolder({ ...options, cacheMegabytes: 0 });
    for (let turn = 0; turn < 5; turn++) {
      const batches = new Prefetcher(train, { batchSize: 16, seed: turn, rank: 0, worldSize: 1 });
      if (turn > 1) await batches.next();
      await batches.close();
    }
  });
});
