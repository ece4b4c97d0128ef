import { type ImageDecoder, sharpDecoder } from "./decode-image.ts";
import { jpegDecoder } from "./decode-jpeg.ts";

/**
 * What decodes images: package `sharp` all of them, or `@napi-rs/image` ordinary JPEGs (see `jpegDecoder`) and
 * sharp the others. Pixels of the two are not the same.
 */
export type DecoderName = "sharp" | "napi-rs";

/**
 * Find what decodes images.
 *
 * @param from file URL of the module whose dependencies are searched.
 * @throws DataError with the command that installs what is missing.
 */
export const imageDecoder = (from: string, decoder: DecoderName): ImageDecoder =>
  decoder === "napi-rs" ? jpegDecoder(from, sharpDecoder(from)) : sharpDecoder(from);
