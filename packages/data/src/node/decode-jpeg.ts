import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Decoding } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { sampleOf } from "../fit-image.ts";
import { type JpegHeader, jpegHeader } from "../jpeg-header.ts";
import { mostPixelsKept, Resampler } from "../resample.ts";
import { findPackage, readerPackages } from "./data-packages.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { requirePackage } from "./optional-package.ts";
import { withinPixels } from "./pixel-budget.ts";

/** What we use of the package. */
interface NapiImage {
  readonly Transformer: new (
    bytes: Uint8Array,
  ) => {
    /** On a thread of libuv's: red, green and blue, or grey alone, as they are stored. Rejects for damaged bytes. */
    rawPixels(): Promise<Uint8Array>;
  };
}

/** The package, and its version. @throws DataError where it is not there, or has no build for this machine. */
const loadNapiImage = (from: string): { readonly napi: NapiImage; readonly version: string } => {
  const { name } = readerPackages.jpegs;
  let napi: NapiImage;
  try {
    napi = requirePackage(readerPackages.jpegs, from) as NapiImage;
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError(
      `package ${name} cannot be loaded on ${process.platform} ${process.arch} (${(error as Error).message.split("\n")[0]}); install it anew there, or leave out decoder: napi-rs`,
      { cause: error },
    );
  }
  const { version } = JSON.parse(readFileSync(join(findPackage(name, from)!, "package.json"), "utf8")) as {
    readonly version: string;
  };
  return { napi, version };
};

/** Baseline, extended and progressive, all of Huffman's codes. */
const frames: readonly number[] = [0xc0, 0xc1, 0xc2];

/** Whether a file goes on to the end of its image: the package shows what is missing as grey, and says nothing. */
const isWhole = (bytes: Uint8Array): boolean => bytes.at(-2) === 0xff && bytes.at(-1) === 0xd9;

/** Whether an image is of those that both decode alike, but for rounding. */
const isOrdinary = ({ rows, columns, components, precision, frame }: JpegHeader, channels: 1 | 3): boolean =>
  frames.includes(frame) &&
  precision === 8 &&
  (components === 1 || (components === 3 && channels === 3)) &&
  rows > 0 &&
  columns > 0 &&
  rows * columns <= mostPixelsKept;

/**
 * Decodes ordinary JPEGs by package `@napi-rs/image`, and brings them to their size by `Resampler`; all else by
 * `other`: other formats, more than 8 bits, inks, colours of which grey is wanted, more than 2²⁶ pixels, files that do
 * not end where their image does, and what the package cannot decode. Which one it is the bytes of an image alone
 * decide.
 *
 * Pixels are not those of sharp: chroma is rounded otherwise (by 4 at most, 0.4 in the mean), `cover` cuts within
 * pixels where sharp cuts between them, and the resampling filter is another one unless `resample` names it.
 * @param from file URL of the module whose dependencies are searched.
 * @throws DataError with the command that installs it.
 */
export const jpegDecoder = (from: string, other: ImageDecoder): ImageDecoder => {
  const { napi, version } = loadNapiImage(from);
  const resampler = new Resampler();
  // libjpeg-turbo itself, @julusian/jpeg-turbo, is twice as fast, but ends the process with its thread: its calls must
  // not be under way when a thread is terminated, nor when the process exits.
  const decodeOrdinary = async (
    bytes: Uint8Array,
    { rows, columns, components, orientation }: JpegHeader,
    decoding: Decoding,
  ): Promise<Uint8Array | undefined> => {
    let pixels: Uint8Array;
    try {
      pixels = await new napi.Transformer(bytes).rawPixels();
    } catch {
      return undefined; // the other one says whether it is damaged, and how
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
