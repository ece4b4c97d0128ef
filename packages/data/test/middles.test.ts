import { readFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import type { Decoding } from "../src/encoded-records.ts";
import { imageDecoder } from "../src/node/image-decoder.ts";

interface Case extends Required<Pick<Decoding, "size" | "resize" | "resample">> {
  readonly image: string;
  readonly pixels: string;
}

const cases = JSON.parse(readFileSync(join(import.meta.dirname, "resample/middles.json"), "utf8")) as readonly Case[];
const [bySharp, byNapi] = (["sharp", "napi-rs"] as const).map((name) => imageDecoder(import.meta.url, name));
const bytesOf = (name: string): Buffer => readFileSync(join(import.meta.dirname, "images", name));

describe("resized and center-cropped images", () => {
  test.each(cases)("equal Pillow's result for $image by $resample, to $resize and $size", async (one) => {
    const decoding: Decoding = { ...one, channels: 3, fit: "cover" };
    const [wanted, bytes] = [Buffer.from(one.pixels, "base64"), bytesOf(one.image)];
    expect(Buffer.compare(await bySharp!.decode(bytes, decoding), wanted)).toBe(0);
    // `@napi-rs/image` rounds the chroma differently.
    const found = await byNapi!.decode(bytes, decoding);
    expect(found).toHaveLength(wanted.length);
    expect(Math.max(...found.map((value, i) => Math.abs(value - wanted[i]!)))).toBeLessThanOrEqual(4);
  });
});

test("the chosen filter is used for every fit and decoder", async () => {
  const png = bytesOf("plain.png");
  for (const fit of ["cover", "contain", "stretch"] as const) {
    const decoding: Decoding = { size: [9, 7], channels: 3, fit, resample: "bilinear" };
    const jpeg = await sharp(png).jpeg().toBuffer();
    const same = await bySharp!.decode(await sharp(jpeg).png().toBuffer(), decoding);
    // A PNG with the pixels of a JPEG is resized like the JPEG.
    expect(await bySharp!.decode(jpeg, decoding)).toEqual(same);
    expect(await bySharp!.decode(jpeg, { ...decoding, resample: "nearest" })).not.toEqual(same);
  }
});

test("gray of a color image is computed from the resized image", async () => {
  const decoding: Decoding = { size: [8, 8], channels: 1, fit: "cover", resize: 10, resample: "bicubic" };
  const grey = await bySharp!.decode(bytesOf("grey.jpg"), decoding);
  const three = await bySharp!.decode(bytesOf("grey.jpg"), { ...decoding, channels: 3 });
  expect(three).toEqual(Uint8Array.from({ length: 3 * grey.length }, (_, i) => grey[Math.floor(i / 3)]!));
});
