import { foreignContent } from "@skein/tensor-core/backend";
import { coloursOfInks, luma } from "../convert-colours.ts";
import { type Decoding, isResizedHere } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { sampleOf } from "../fit-image.ts";
import { jpegHeader } from "../jpeg-header.ts";
import { maxPixelsKept, Resampler } from "../resample.ts";
import { readerPackages } from "./data-packages.ts";
import { requirePackage } from "./optional-package.ts";
import { maxPixels, smallPixels, withinPixels } from "./pixel-budget.ts";

/** The part of sharp's interface that is used here. */
interface Pipeline {
  autoOrient(): Pipeline;
  flatten(options: { readonly background: string }): Pipeline;
  resize(width: number, height: number, options: { readonly fit: string; readonly background: string }): Pipeline;
  removeAlpha(): Pipeline;
  pipelineColourspace(name: string): Pipeline;
  toColourspace(name: string): Pipeline;
  raw(options: { readonly depth: "uchar" }): Pipeline;
  metadata(): Promise<{
    readonly width: number;
    readonly height: number;
    readonly space?: string | undefined;
    readonly depth?: string | undefined;
  }>;
  toBuffer(): Promise<Uint8Array>;
  toBuffer(options: { readonly resolveWithObject: true }): Promise<{
    readonly data: Uint8Array;
    readonly info: { readonly width: number; readonly height: number };
  }>;
}

interface Sharp {
  (
    bytes: Uint8Array,
    options:
      | { readonly failOn: "error"; readonly ignoreIcc: true; readonly limitInputPixels: number }
      | { readonly raw: { readonly width: number; readonly height: number; readonly channels: 3 } },
  ): Pipeline;
  readonly versions: { readonly sharp: string; readonly vips: string };
  concurrency(threads: number): void;
  cache(kept: false): void;
}

/** Part of sharp's error for an image with more pixels than its limit. */
const tooManyPixels = "exceeds pixel limit";

/** Decodes images on libuv's threads, one image per thread. */
export interface ImageDecoder {
  /** Name and version of the decoder and of its underlying library. */
  readonly version: string;
  /**
   * Decodes one image to u8 [rows, columns, channels]. EXIF orientation is applied, transparency becomes black, and of
   * an animation only the first frame is used. Colors are those of the file, as in Pillow: color profiles are ignored,
   * CMYK is converted by Pillow's rule, and gray is luma. Rejects with the decoder's reason, in one line, for damaged
   * bytes, and with a DataError if memory is short.
   */
  decode(bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array>;
}

const isTiff = (bytes: Uint8Array): boolean =>
  ["II*\0", "MM\0*", "II+\0", "MM\0+"].includes(String.fromCharCode(...bytes.subarray(0, 4)));

/**
 * Whether a file may hold CMYK, so that its header is worth reading: a TIFF, or a JPEG that has neither 1 nor 3
 * components.
 */
const mayHoldInks = (bytes: Uint8Array): boolean =>
  isTiff(bytes) || (bytes[0] === 0xff && bytes[1] === 0xd8 && ![1, 3].includes(jpegHeader(bytes)?.components ?? 0));

/** Returns sharp's reason for a damaged image in one line. sharp may repeat a reason, or give no reason. */
const reasonOf = (error: Error): string => {
  const reasons: string[] = [];
  for (const line of error.message.split("\n").map((text) => text.trim().replace(/:$/, "")))
    if (line !== "Unknown error" && !reasons.some((reason) => reason.includes(line))) reasons.push(line);
  const reason = reasons.filter((line) => line !== "").join("; ");
  return reason === "" ? "sharp gives no reason" : reason.replaceAll(/\p{C}/gu, "?").slice(0, 200);
};

/**
 * Resolves package `sharp`.
 *
 * @param from file URL of the module from which the package is resolved.
 * @throws DataError with the command that installs it.
 */
export const sharpDecoder = (from: string): ImageDecoder => {
  const sharp = requirePackage(readerPackages.images, from) as Sharp;
  // There are more images than cores, so each image uses one thread. Images do not repeat soon enough for a cache to
  // help.
  sharp.concurrency(1);
  sharp.cache(false);
  let kept: Resampler | undefined;
  const stored = (bytes: Uint8Array, limitInputPixels: number): Pipeline =>
    sharp(bytes, { failOn: "error", ignoreIcc: true, limitInputPixels });
  const inColours = (image: Pipeline): Pipeline => image.toColourspace("srgb").raw({ depth: "uchar" });
  /** Converts an image from CMYK to RGB if it has 8 bits per component; otherwise returns undefined. */
  const uprightInks = async (bytes: Uint8Array, limit: number): Promise<Pipeline | undefined> => {
    const { space, depth } = await stored(bytes, limit).metadata();
    if (space !== "cmyk" || depth !== "uchar") return undefined;
    const inks = stored(bytes, limit).autoOrient().pipelineColourspace("cmyk").removeAlpha().toColourspace("cmyk");
    const { data, info } = await inks.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
    return sharp(coloursOfInks(data), { raw: { width: info.width, height: info.height, channels: 3 } });
  };
  const upright = async (bytes: Uint8Array, limit: number): Promise<Pipeline> =>
    (mayHoldInks(bytes) ? await uprightInks(bytes, limit) : undefined) ??
    stored(bytes, limit).autoOrient().flatten({ background: "black" });
  const resizedHere = async (bytes: Uint8Array, decoding: Decoding, limit: number): Promise<Uint8Array> => {
    const { data, info } = await inColours(await upright(bytes, limit)).toBuffer({ resolveWithObject: true });
    const [rows, columns] = [info.height, info.width];
    const resampler = rows * columns > maxPixelsKept ? new Resampler() : (kept ??= new Resampler());
    return sampleOf({ bytes: decoding.channels === 1 ? luma(data) : data, rows, columns }, 1, decoding, resampler);
  };
  const resizedBySharp = async (
    bytes: Uint8Array,
    { size, channels, fit }: Decoding,
    limit: number,
  ): Promise<Uint8Array> => {
    const image = await upright(bytes, limit);
    const colours = await inColours(
      image.resize(size[1], size[0], { fit: fit === "stretch" ? "fill" : fit, background: "black" }),
    ).toBuffer();
    return channels === 1 ? luma(colours) : colours;
  };
  const decodeUpTo = (bytes: Uint8Array, decoding: Decoding, limit: number): Promise<Uint8Array> =>
    isResizedHere(decoding) ? resizedHere(bytes, decoding, limit) : resizedBySharp(bytes, decoding, limit);
  /** Reads the headers of large images twice, the headers of other images once. */
  const decodeAny = async (bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array> => {
    try {
      return await decodeUpTo(bytes, decoding, smallPixels);
    } catch (error) {
      if (!(error as Error).message.includes(tooManyPixels)) throw error;
    }
    const { height, width } = await stored(bytes, 0).metadata();
    const kept = isResizedHere(decoding) || mayHoldInks(bytes) ? "whole" : "rows";
    return withinPixels(height, width, kept, () => decodeUpTo(bytes, decoding, maxPixels));
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
