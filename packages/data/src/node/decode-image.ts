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

/** Members of sharp's interface that this module uses. */
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

/** Text in the error of sharp for an image that exceeds its pixel limit. */
const tooManyPixels = "exceeds pixel limit";

/** Decodes images on the threads of libuv, one image per thread. */
export interface ImageDecoder {
  /** Name and version of the decoder and of its underlying library. */
  readonly version: string;
  /**
   * Decodes one image to u8 [rows, columns, channels]. Applies the EXIF orientation, replaces transparency by black,
   * and uses only the first frame of an animation. Converts colors as Pillow does: color profiles are ignored, CMYK is
   * converted with Pillow's formula, and gray is luma. For damaged bytes, rejects with the decoder's reason in one
   * line. If memory is insufficient, rejects with a DataError.
   */
  decode(bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array>;
}

const isTiff = (bytes: Uint8Array): boolean =>
  ["II*\0", "MM\0*", "II+\0", "MM\0+"].includes(String.fromCharCode(...bytes.subarray(0, 4)));

/**
 * Whether a file may contain CMYK, so that its header must be read: a TIFF, or a JPEG with neither 1 nor 3 components.
 */
const mayHoldInks = (bytes: Uint8Array): boolean =>
  isTiff(bytes) || (bytes[0] === 0xff && bytes[1] === 0xd8 && ![1, 3].includes(jpegHeader(bytes)?.components ?? 0));

/** Returns sharp's reason for a damaged image in one line, without repeated text. sharp may also give no reason. */
const reasonOf = (error: Error): string => {
  const reasons: string[] = [];
  for (const line of error.message.split("\n").map((text) => text.trim().replace(/:$/, "")))
    if (line !== "Unknown error" && !reasons.some((reason) => reason.includes(line))) reasons.push(line);
  const reason = reasons.filter((line) => line !== "").join("; ");
  return reason === "" ? "sharp gives no reason" : reason.replaceAll(/\p{C}/gu, "?").slice(0, 200);
};

/**
 * Returns a decoder that uses package `sharp`.
 *
 * @param from File URL of the module from which the package is resolved.
 * @throws DataError with the install command if the package is missing.
 */
export const sharpDecoder = (from: string): ImageDecoder => {
  const sharp = requirePackage(readerPackages.images, from) as Sharp;
  // There are more images than cores, so each image uses one thread. A cache would not help, because an image is not
  // decoded again soon.
  sharp.concurrency(1);
  sharp.cache(false);
  let kept: Resampler | undefined;
  const stored = (bytes: Uint8Array, limitInputPixels: number): Pipeline =>
    sharp(bytes, { failOn: "error", ignoreIcc: true, limitInputPixels });
  const inColours = (image: Pipeline): Pipeline => image.toColourspace("srgb").raw({ depth: "uchar" });
  /** Converts an image from CMYK to RGB if it has 8 bits per component. Returns undefined for other images. */
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
  /** Decodes any image. The header of a large image is read twice, other headers only once. */
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
