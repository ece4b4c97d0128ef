import type { Decoding } from "../encoded-records.ts";
import { readerPackages } from "./data-packages.ts";
import { requirePackage } from "./optional-package.ts";

/** What we use of the package. */
interface Pipeline {
  autoOrient(): Pipeline;
  flatten(options: { readonly background: string }): Pipeline;
  resize(width: number, height: number, options: { readonly fit: string; readonly background: string }): Pipeline;
  toColourspace(name: string): Pipeline;
  raw(options: { readonly depth: "uchar" }): Pipeline;
  toBuffer(): Promise<Uint8Array>;
}

interface Sharp {
  (bytes: Uint8Array, options: { readonly failOn: "error" }): Pipeline;
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
   * the first picture counts. Rejects with what the decoder says of damaged bytes, in one line.
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
  return {
    version: `sharp ${sharp.versions.sharp}, libvips ${sharp.versions.vips}`,
    decode: async (bytes, { size: [rows, columns], channels, fit }) => {
      try {
        return await sharp(bytes, { failOn: "error" })
          .autoOrient()
          .flatten({ background: "black" })
          .resize(columns, rows, { fit: fit === "stretch" ? "fill" : fit, background: "black" })
          .toColourspace(channels === 1 ? "b-w" : "srgb")
          .raw({ depth: "uchar" })
          .toBuffer();
      } catch (cause) {
        throw new Error((cause as Error).message.split("\n")[0], { cause });
      }
    },
  };
};
