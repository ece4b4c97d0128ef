import { foreignContent } from "@skein/tensor-core/backend";
import { type Decoding, isResizedHere } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { sampleOf } from "../fit-image.ts";
import { mostPixelsKept, Resampler } from "../resample.ts";
import { readerPackages } from "./data-packages.ts";
import { requirePackage } from "./optional-package.ts";
import { mostPixels, smallPixels, withinPixels } from "./pixel-budget.ts";

/** What we use of the package. */
interface Pipeline {
  metadata(): Promise<{ readonly width: number; readonly height: number }>;
  autoOrient(): Pipeline;
  flatten(options: { readonly background: string }): Pipeline;
  resize(width: number, height: number, options: { readonly fit: string; readonly background: string }): Pipeline;
  toColourspace(name: string): Pipeline;
  raw(options: { readonly depth: "uchar" }): Pipeline;
  toBuffer(): Promise<Uint8Array>;
  toBuffer(options: { readonly resolveWithObject: true }): Promise<{
    readonly data: Uint8Array;
    readonly info: { readonly width: number; readonly height: number };
  }>;
}

interface Sharp {
  (bytes: Uint8Array, options: { readonly failOn: "error"; readonly limitInputPixels: number }): Pipeline;
  readonly versions: { readonly sharp: string; readonly vips: string };
  concurrency(threads: number): void;
  cache(kept: false): void;
}

/** What sharp says of an image with more pixels than its limit. */
const tooManyPixels = "exceeds pixel limit";

/** What sharp says of an image, in one line: sentences of several lines, of which some are empty or repeat others. */
const reasonOf = ({ message }: Error): string =>
  [...new Set(message.split("\n").map((line) => line.trim()))].filter((line) => line !== "").join(" ");

/** Decodes images on libuv's threads, an image on each. */
export interface ImageDecoder {
  /** Its name and version, and those of the library that it stands on. */
  readonly version: string;
  /**
   * Decode one image: u8 [rows, columns, channels]. EXIF turns it, what is transparent becomes black, of an animation
   * the first picture counts. Rejects with what the decoder says of damaged bytes, in one line, and with a DataError if
   * memory is short.
   */
  decode(bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array>;
}

/**
 * Find package `sharp`.
 *
 * @param from file URL of the module whose dependencies are searched.
 * @throws DataError with the command that installs it.
 */
export const sharpDecoder = (from: string): ImageDecoder => {
  const sharp = requirePackage(readerPackages.images, from) as Sharp;
  // Images there are more of than cores, so each has a thread; and none comes twice so soon that keeping it helped.
  sharp.concurrency(1);
  sharp.cache(false);
  let kept: Resampler | undefined;
  const open = (bytes: Uint8Array, limitInputPixels: number): Pipeline =>
    sharp(bytes, { failOn: "error", limitInputPixels });
  const upright = (bytes: Uint8Array, limit: number): Pipeline =>
    open(bytes, limit).autoOrient().flatten({ background: "black" });
  const raw = (image: Pipeline, channels: Decoding["channels"]): Pipeline =>
    image.toColourspace(channels === 1 ? "b-w" : "srgb").raw({ depth: "uchar" });
  const resizedHere = async (bytes: Uint8Array, decoding: Decoding, limit: number): Promise<Uint8Array> => {
    const { data, info } = await raw(upright(bytes, limit), decoding.channels).toBuffer({ resolveWithObject: true });
    const [rows, columns] = [info.height, info.width];
    const resampler = rows * columns > mostPixelsKept ? new Resampler() : (kept ??= new Resampler());
    return sampleOf({ bytes: data, rows, columns }, 1, decoding, resampler);
  };
  const resizedBySharp = (bytes: Uint8Array, { size, channels, fit }: Decoding, limit: number): Promise<Uint8Array> =>
    raw(
      upright(bytes, limit).resize(size[1], size[0], { fit: fit === "stretch" ? "fill" : fit, background: "black" }),
      channels,
    ).toBuffer();
  const decodeUpTo = (bytes: Uint8Array, decoding: Decoding, limit: number): Promise<Uint8Array> =>
    isResizedHere(decoding) ? resizedHere(bytes, decoding, limit) : resizedBySharp(bytes, decoding, limit);
  /** Only the headers of large images are read twice. */
  const decodeAny = async (bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array> => {
    try {
      return await decodeUpTo(bytes, decoding, smallPixels);
    } catch (error) {
      if (!(error as Error).message.includes(tooManyPixels)) throw error;
    }
    const { height, width } = await open(bytes, 0).metadata();
    const kept = isResizedHere(decoding) ? "whole" : "rows";
    return withinPixels(height, width, kept, () => decodeUpTo(bytes, decoding, mostPixels));
  };
  return {
    version: `sharp ${sharp.versions.sharp}, libvips ${sharp.versions.vips}`,
    decode: async (bytes, decoding) => {
      try {
        return await decodeAny(bytes, decoding);
      } catch (cause) {
        if (cause instanceof DataError) throw cause;
        const foreign = foreignContent(bytes, "image");
        throw new Error(foreign === undefined ? reasonOf(cause as Error) : `it ${foreign}`, { cause });
      }
    },
  };
};
