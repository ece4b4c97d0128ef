import { coloursOfInks, luma } from "../convert-colours.ts";
import { type Decoding, isResizedHere } from "../encoded-records.ts";
import { sampleOf } from "../fit-image.ts";
import { jpegHeader } from "../jpeg-header.ts";
import { mostPixelsKept, Resampler } from "../resample.ts";
import { readerPackages } from "./data-packages.ts";
import { requirePackage } from "./optional-package.ts";

/** What we use of the package. */
interface Pipeline {
  autoOrient(): Pipeline;
  flatten(options: { readonly background: string }): Pipeline;
  resize(width: number, height: number, options: { readonly fit: string; readonly background: string }): Pipeline;
  removeAlpha(): Pipeline;
  pipelineColourspace(name: string): Pipeline;
  toColourspace(name: string): Pipeline;
  raw(options: { readonly depth: "uchar" }): Pipeline;
  metadata(): Promise<{ readonly space?: string | undefined; readonly depth?: string | undefined }>;
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
      | { readonly failOn: "error"; readonly ignoreIcc: true }
      | { readonly raw: { readonly width: number; readonly height: number; readonly channels: 3 } },
  ): Pipeline;
  readonly versions: { readonly sharp: string; readonly vips: string };
  concurrency(threads: number): void;
  cache(kept: false): void;
}

/** Decodes images on libuv's threads, an image on each. */
export interface ImageDecoder {
  /** Its name and version, and those of the library that it stands on. */
  readonly version: string;
  /**
   * Decode one image: u8 [rows, columns, channels]. EXIF turns it, what is transparent becomes black, of an animation
   * the first picture counts. Colours are those of the file, as Pillow has them: colour profiles are ignored, inks
   * (CMYK) are converted by Pillow's rule, and grey is luma. Rejects with what the decoder says of damaged bytes, in
   * one line.
   */
  decode(bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array>;
}

const isTiff = (bytes: Uint8Array): boolean =>
  ["II*\0", "MM\0*", "II+\0", "MM\0+"].includes(String.fromCharCode(...bytes.subarray(0, 4)));

/** Whether a file may hold inks, so that its header is worth reading: a TIFF, or a JPEG that is not of colours. */
const mayHoldInks = (bytes: Uint8Array): boolean =>
  isTiff(bytes) || (bytes[0] === 0xff && bytes[1] === 0xd8 && ![1, 3].includes(jpegHeader(bytes)?.components ?? 0));

/** What sharp says of a damaged image, in one line: it may say the same several times, or nothing. */
const reasonOf = (error: Error): string => {
  const reasons: string[] = [];
  for (const line of error.message.split("\n").map((text) => text.trim().replace(/:$/, "")))
    if (line !== "Unknown error" && !reasons.some((reason) => reason.includes(line))) reasons.push(line);
  const reason = reasons.filter((line) => line !== "").join("; ");
  return reason === "" ? "sharp gives no reason" : reason.replaceAll(/\p{C}/gu, "?").slice(0, 200);
};

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
  const stored = (bytes: Uint8Array): Pipeline => sharp(bytes, { failOn: "error", ignoreIcc: true });
  const inColours = (image: Pipeline): Pipeline => image.toColourspace("srgb").raw({ depth: "uchar" });
  /** The inks of an image as colours, if it has 8 bits of each. */
  const uprightInks = async (bytes: Uint8Array): Promise<Pipeline | undefined> => {
    const { space, depth } = await stored(bytes).metadata();
    if (space !== "cmyk" || depth !== "uchar") return undefined;
    const inks = stored(bytes).autoOrient().pipelineColourspace("cmyk").removeAlpha().toColourspace("cmyk");
    const { data, info } = await inks.raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true });
    return sharp(coloursOfInks(data), { raw: { width: info.width, height: info.height, channels: 3 } });
  };
  const upright = async (bytes: Uint8Array): Promise<Pipeline> =>
    (mayHoldInks(bytes) ? await uprightInks(bytes) : undefined) ??
    stored(bytes).autoOrient().flatten({ background: "black" });
  const resizedHere = async (bytes: Uint8Array, decoding: Decoding): Promise<Uint8Array> => {
    const { data, info } = await inColours(await upright(bytes)).toBuffer({ resolveWithObject: true });
    const [rows, columns] = [info.height, info.width];
    const resampler = rows * columns > mostPixelsKept ? new Resampler() : (kept ??= new Resampler());
    return sampleOf({ bytes: decoding.channels === 1 ? luma(data) : data, rows, columns }, 1, decoding, resampler);
  };
  const resizedBySharp = async (bytes: Uint8Array, { size, channels, fit }: Decoding): Promise<Uint8Array> => {
    const image = await upright(bytes);
    const colours = await inColours(
      image.resize(size[1], size[0], { fit: fit === "stretch" ? "fill" : fit, background: "black" }),
    ).toBuffer();
    return channels === 1 ? luma(colours) : colours;
  };
  return {
    version: `sharp ${sharp.versions.sharp}, libvips ${sharp.versions.vips}`,
    decode: async (bytes, decoding) => {
      try {
        return await (isResizedHere(decoding) ? resizedHere(bytes, decoding) : resizedBySharp(bytes, decoding));
      } catch (cause) {
        throw new Error(reasonOf(cause as Error), { cause });
      }
    },
  };
};
