import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Decoding } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { sampleOf } from "../fit-image.ts";
import { type JpegHeader, jpegHeader } from "../jpeg-header.ts";
import { maxPixelsKept, Resampler } from "../resample.ts";
import { findPackage, readerPackages } from "./data-packages.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { requirePackage } from "./optional-package.ts";
import { withinPixels } from "./pixel-budget.ts";

/** Members of `@napi-rs/image`'s interface that this module uses. */
interface NapiImage {
  readonly Transformer: new (
    bytes: Uint8Array,
  ) => {
    /**
     * Decodes on a thread of libuv. Returns RGB pixels, or gray pixels for a gray image, without applying the
     * orientation. Rejects for damaged bytes.
     */
    rawPixels(): Promise<Uint8Array>;
  };
}

/** Loads the package and its version. @throws DataError if the package is missing, or has no build for this machine. */
const loadNapiImage = (from: string): { readonly napi: NapiImage; readonly version: string } => {
  const { name } = readerPackages.jpegs;
  let napi: NapiImage;
  try {
    napi = requirePackage(readerPackages.jpegs, from) as NapiImage;
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError(
      `package ${name} cannot be loaded on ${process.platform} ${process.arch} (${(error as Error).message.split("\n")[0]}); install it again there, or remove decoder: napi-rs`,
      { cause: error },
    );
  }
  const { version } = JSON.parse(readFileSync(join(findPackage(name, from)!, "package.json"), "utf8")) as {
    readonly version: string;
  };
  return { napi, version };
};

/** Start-of-frame markers of baseline, extended and progressive JPEGs with Huffman coding. */
const frames: readonly number[] = [0xc0, 0xc1, 0xc2];

/**
 * Whether a file ends with an end-of-image marker. If the file is truncated, the package fills missing pixels with gray
 * and reports no error.
 */
const isWhole = (bytes: Uint8Array): boolean => bytes.at(-2) === 0xff && bytes.at(-1) === 0xd9;

/** Whether `@napi-rs/image` and sharp decode an image to equal pixels, except for rounding. */
const isOrdinary = ({ rows, columns, components, precision, frame }: JpegHeader, channels: 1 | 3): boolean =>
  frames.includes(frame) &&
  precision === 8 &&
  (components === 1 || (components === 3 && channels === 3)) &&
  rows > 0 &&
  columns > 0 &&
  rows * columns <= maxPixelsKept;

/**
 * Returns a decoder that decodes baseline, extended and progressive JPEGs with package `@napi-rs/image`, and resizes
 * them with `Resampler`. `other` decodes all other images: other formats, more than 8 bits, CMYK, color images with
 * gray samples, more than 2²⁶ pixels, files that do not end with an end-of-image marker, and files that the package
 * cannot decode. The choice depends only on the bytes of the image.
 *
 * Pixels differ from sharp's. Chroma is rounded differently (by at most 4, 0.4 on average). `cover` crops at fractional
 * pixel positions, whereas sharp crops at pixel boundaries. The resampling filter differs unless `resample` is set.
 *
 * @param from File URL of the module from which the package is resolved.
 * @throws DataError with the install command if the package is missing.
 */
export const jpegDecoder = (from: string, other: ImageDecoder): ImageDecoder => {
  const { napi, version } = loadNapiImage(from);
  const resampler = new Resampler();
  // libjpeg-turbo (@julusian/jpeg-turbo) is twice as fast, but its pending calls crash the process when their thread is
  // terminated or the process exits.
  const decodeOrdinary = async (
    bytes: Uint8Array,
    { rows, columns, components, orientation }: JpegHeader,
    decoding: Decoding,
  ): Promise<Uint8Array | undefined> => {
    let pixels: Uint8Array;
    try {
      pixels = await new napi.Transformer(bytes).rawPixels();
    } catch {
      return undefined; // the other decoder reports whether the image is damaged
    }
    if (pixels.length !== rows * columns * components) return undefined;
    return sampleOf({ bytes: pixels, rows, columns }, orientation, decoding, resampler);
  };
  return {
    version: `${readerPackages.jpegs.name} ${version}, ${other.version}`,
    decode: async (bytes, decoding) => {
      const header = isWhole(bytes) ? jpegHeader(bytes) : undefined;
      if (header === undefined || !isOrdinary(header, decoding.channels)) return other.decode(bytes, decoding);
      const pixels = await withinPixels(header.rows, header.columns, "whole", () =>
        decodeOrdinary(bytes, header, decoding),
      );
      return pixels ?? other.decode(bytes, decoding);
    },
  };
};
