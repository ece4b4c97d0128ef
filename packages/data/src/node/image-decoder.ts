import { type ImageDecoder, sharpDecoder } from "./decode-image.ts";
import { jpegDecoder } from "./decode-jpeg.ts";

/**
 * Package that decodes images: `sharp` for all images, or `@napi-rs/image` for ordinary JPEGs (see `jpegDecoder`) and
 * sharp for the others. The pixels of the two differ.
 */
export type DecoderName = "sharp" | "napi-rs";

/**
 * Returns the decoder of a package.
 *
 * @param from file URL of the module from which the package is resolved.
 * @throws DataError with the command that installs a missing package.
 */
export const imageDecoder = (from: string, decoder: DecoderName): ImageDecoder =>
  decoder === "napi-rs" ? jpegDecoder(from, sharpDecoder(from)) : sharpDecoder(from);
