import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { coloursOfInks, luma } from "../src/convert-colours.ts";
import type { Decoding } from "../src/encoded-records.ts";
import { imageDecoder } from "../src/node/image-decoder.ts";

interface Case extends Pick<Decoding, "size" | "channels"> {
  readonly name: string;
  readonly file: string;
  readonly pixels: string;
}

const cases = JSON.parse(readFileSync(join(import.meta.dirname, "colours/expected.json"), "utf8")) as readonly Case[];
const decoders = (["sharp", "napi-rs"] as const).map((name) => [name, imageDecoder(import.meta.url, name)] as const);
const distance = (one: Uint8Array, other: Uint8Array): number => {
  expect(one).toHaveLength(other.length);
  return Math.max(...one.map((value, i) => Math.abs(value - other[i]!)));
};

describe("colors and grays", () => {
  test.each(cases)("of a $name equal Pillow's, with $channels channels at $size", async ({ name, file, ...wanted }) => {
    const [bytes, pixels] = [Buffer.from(file, "base64"), Buffer.from(wanted.pixels, "base64")];
    for (const [decoder, { decode }] of decoders) {
      // `@napi-rs/image` rounds the cosine transform and the chroma of JPEGs differently.
      const bound =
        decoder === "sharp" ? 0 : name === "grey jpeg" ? 1 : name === "jpeg" && wanted.channels === 3 ? 4 : 0;
      const decoding: Decoding = { size: wanted.size, channels: wanted.channels, fit: "stretch" };
      expect(distance(await decode(bytes, { ...decoding, resample: "bilinear" }), pixels)).toBeLessThanOrEqual(bound);
      if (wanted.size[0] === 7) expect(distance(await decode(bytes, decoding), pixels)).toBeLessThanOrEqual(bound);
    }
  });

  test("are those of the file, whatever its color profile", async () => {
    const noise = Uint8Array.from({ length: 9 * 7 * 3 }, (_, i) => (i * i * 31 + i * 7) % 256);
    const image = sharp(noise, { raw: { width: 9, height: 7, channels: 3 } }).withIccProfile("p3");
    for (const file of [await image.png().toBuffer(), await image.jpeg().toBuffer(), await image.tiff().toBuffer()]) {
      const stored = await sharp(file, { ignoreIcc: true }).raw().toBuffer();
      const plain = await sharp(stored, { raw: { width: 9, height: 7, channels: 3 } })
        .png()
        .toBuffer();
      expect(distance(stored, await sharp(file).raw().toBuffer())).toBeGreaterThan(9);
      for (const [name, { decode }] of decoders)
        for (const channels of [1, 3] as const)
          for (const resample of [undefined, "bicubic"] as const) {
            const decoding: Decoding = { size: [7, 9], channels, fit: "stretch", resample };
            const bound = name === "napi-rs" ? 4 : 0;
            expect(distance(await decode(file, decoding), await decode(plain, decoding))).toBeLessThanOrEqual(bound);
          }
    }
  });

  test("with 16 bits are reduced to their upper bytes", async () => {
    const words = Uint16Array.from({ length: 9 * 7 * 3 }, (_, i) => (i * 40503) % 65536);
    const png = (channels: 1 | 3): Promise<Buffer> =>
      sharp(words.slice(0, 63 * channels), { raw: { width: 9, height: 7, channels } })
        .toColourspace(channels === 1 ? "grey16" : "rgb16")
        .png()
        .toBuffer();
    const bytes = Uint8Array.from(words, (word) => word >> 8);
    for (const [, { decode }] of decoders) {
      expect(await decode(await png(1), { size: [7, 9], channels: 1, fit: "stretch" })).toEqual(bytes.slice(0, 63));
      const decoding: Decoding = { size: [7, 9], channels: 3, fit: "stretch" };
      expect(Buffer.compare(await decode(await png(3), decoding), bytes)).toBe(0);
      expect(Buffer.compare(await decode(await png(3), { ...decoding, channels: 1 }), luma(bytes))).toBe(0);
    }
  });

  test("depend only on bytes: gray stays gray, full black ink is black, no ink is white", () => {
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), fc.nat(255), (one, two, three) => {
        expect([...luma(Uint8Array.of(one, one, one))]).toEqual([one]);
        expect([...coloursOfInks(Uint8Array.of(one, two, three, 255))]).toEqual([0, 0, 0]);
        expect([...coloursOfInks(Uint8Array.of(0, 0, 0, one))]).toEqual(Array(3).fill(255 - one));
        expect([...coloursOfInks(Uint8Array.of(one, two, three, 0))]).toEqual([255 - one, 255 - two, 255 - three]);
      }),
    );
    const grey = (...colour: number[]): number => luma(Uint8Array.from(colour))[0]!;
    expect([grey(255, 0, 0), grey(0, 255, 0), grey(0, 0, 255), grey(200, 100, 50)]).toEqual([76, 150, 29, 124]);
  });
});

test("the error for a damaged image is one line with the reason", async () => {
  const noise = new Uint8Array(64 * 64 * 3).map((_, i) => (i * i * 31) >> 3);
  const image = sharp(noise, { raw: { width: 64, height: 64, channels: 3 } });
  const [jpeg, png] = [await image.jpeg().toBuffer(), await image.png().toBuffer()];
  const pngWith = (at: number): Buffer => Buffer.from(png.map((byte, i) => (i === at ? 0xff : byte)));
  for (const [, { decode }] of decoders)
    for (const [bytes, line] of [
      [jpeg.subarray(0, 300), /^Input buffer has corrupt header: VipsJpeg: premature end of JPEG image$/],
      [png.subarray(0, png.length / 2), /^vipspng: libpng read error$/],
      [pngWith(16), /^Input buffer has corrupt header$/],
      [pngWith(29), /^sharp gives no reason$/],
    ] as const)
      await expect(decode(bytes, { size: [4, 4], channels: 3, fit: "cover" })).rejects.toThrow(line);
});
