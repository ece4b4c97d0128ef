import { type ImageDecoder, sharpDecoder } from "./decode-image.ts";
import { jpegDecoder } from "./decode-jpeg.ts";

/**
 * Package that decodes images. With `sharp`, sharp decodes all images. With `napi-rs`, `@napi-rs/image` decodes
 * ordinary JPEGs (see `jpegDecoder`), and sharp decodes other images. Decoded pixels differ between `sharp` and
 * `napi-rs`.
 */
export type DecoderName = "sharp" | "napi-rs";

/**
 * Returns the decoder of a package.
 *
 * @param from File URL of the module from which the package is resolved.
 * @throws DataError with the command that installs a missing package.
 */
export const imageDecoder = (from: string, decoder: DecoderName): ImageDecoder =>
  decoder === "napi-rs" ? jpegDecoder(from, sharpDecoder(from)) : sharpDecoder(from);
