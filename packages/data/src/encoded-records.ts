import type { TensorSpec } from "@skein/tensor-core";
import type { FileWindows } from "./file-windows.ts";
import type { Field, Records } from "./records.ts";
import type { ResamplingFilter } from "./resampling-filters.ts";
import type { TextTable } from "./text-table.ts";

/** Options for decoding images of any size to samples of one size. */
export interface Decoding {
  /** Number of rows and columns of the decoded image. */
  readonly size: readonly [number, number];
  /** Number of channels: 3, RGB, or 1, gray. */
  readonly channels: 1 | 3;
  /**
   * Treatment of images with another aspect ratio: crop to fill (`cover`), pad with black (`contain`), or `stretch`.
   */
  readonly fit: "cover" | "contain" | "stretch";
  /**
   * Size in pixels to which images are resized before the center crop of `size`. Must be at least `size`. Replaces
   * `fit`. A number is the length of the shorter side and preserves the aspect ratio. [rows, columns] stretches the
   * image. Pixels equal the results of Hugging Face's image processors. Absent: `fit` applies.
   */
  readonly resize?: number | readonly [number, number] | undefined;
  /**
   * Pillow resampling filter. Results are bitwise identical to Pillow's, with any decoder. Absent: `bilinear` if
   * `resize` is present; otherwise the decoder resizes. In the latter case, sharp uses a Lanczos filter and decodes a
   * JPEG at reduced size if possible; `@napi-rs/image` uses a bilinear filter.
   */
  readonly resample?: ResamplingFilter | undefined;
}

/** Whether this package resizes images. If false, the decoder resizes them. */
export const isResizedHere = ({ resize, resample }: Pick<Decoding, "resize" | "resample">): boolean =>
  resize !== undefined || resample !== undefined;

/** Locations of encoded images, in a fixed order. */
export interface ImageSource {
  readonly count: number;
  /** Paths of the image files. */
  readonly paths: TextTable;
  /** Bytes of all images, concatenated. Absent: images were not read in advance. */
  readonly stored?: Uint8Array<SharedArrayBuffer> | undefined;
  /**
   * Parts of the files, or of `stored`, that contain the images: names, byte offsets and byte sizes. Absent: one image
   * per file.
   */
  readonly parts?:
    | {
        readonly names: TextTable;
        /** Byte offset of each image, f64 [count]. `sizes` contains the byte size of each image, f64 [count]. */
        readonly begins: Float64Array<SharedArrayBuffer>;
        readonly sizes: Float64Array<SharedArrayBuffer>;
      }
    | undefined;
  /** Label of each image, i32 [count]. */
  readonly labels: Int32Array<SharedArrayBuffer>;
  /** Manifest file, and the line number of each image. Absent: no manifest. */
  readonly manifest?: { readonly file: string; readonly lines: Int32Array<SharedArrayBuffer> } | undefined;
}

/** Cache of decoded images in memory, shared by all image sources of a data set and by all threads. */
export interface ImageCache {
  /** Pixels of all cached images, concatenated. */
  readonly pixels: Uint8Array<SharedArrayBuffer>;
  /** Size of one image in bytes. */
  readonly imageBytes: number;
  /** Maximum number of cached images. */
  readonly capacity: number;
  /** Number of cache slots reserved so far, one i32. May exceed `capacity`. */
  readonly numReserved: Int32Array<SharedArrayBuffer>;
}

/**
 * Images that are read and decoded on demand. Consists of plain data and shared memory, so that it can be posted to
 * threads.
 */
export interface EncodedImages {
  readonly source: ImageSource;
  readonly decoding: Decoding;
  /** Package that decodes the images. */
  readonly decodesBy: "sharp" | "napi-rs";
  /** Name and version of the decoder. Other versions may round differently. */
  readonly decoder: string;
  /** SHA-256 over the encoded images in order, the labels and the decoding options. */
  readonly digest: string;
  readonly cache: ImageCache;
  /** State of each image, see `imageState`, i32 [count]. Shared by all threads. */
  readonly states: Int32Array<SharedArrayBuffer>;
  /** Whether a damaged image is replaced by the next intact image. */
  readonly skipDamaged: boolean;
  /** Maximum number of concurrent decodes per decoding thread. */
  readonly decodesAtOnce: number;
  /** File URL of the module from which the decoder package is resolved. */
  readonly from: string;
}

/** Values of `EncodedImages.states`. A positive value is the cache slot of the image plus 1. */
export const imageState = { unknown: 0, damaged: -1, caching: -2 } as const;

/** Samples with a field `inputs`, u8 [rows, columns, channels], which is decoded when a batch needs it. */
export interface EncodedRecords {
  readonly count: number;
  /** Tensor specs of one sample, by field name. */
  readonly fields: { readonly [name: string]: TensorSpec };
  /** Fields that are stored in memory. */
  readonly stored: { readonly [name: string]: Field };
  readonly images: EncodedImages;
  /** Index of the image of sample 0. Sample i has image `firstImage` + i. */
  readonly firstImage: number;
  /**
   * Permutation of images for drawn samples: sample i has image `order[firstImage + i]`. Absent: sample i has image
   * `firstImage` + i.
   */
  readonly order?: Int32Array<SharedArrayBuffer> | undefined;
}

/** Samples in memory, or in files from which they are read on demand. */
export type Samples = Records | EncodedRecords | FileWindows;

/**
 * Whether samples are images that are decoded on demand.
 *
 * @example
 * ```ts
 * console.log(isEncoded(arrayRecords({ inputs: NdArray.from([1, 2], [2, 1]) }))); // false
 * ```
 */
export const isEncoded = (samples: Samples): samples is EncodedRecords => "images" in samples;

/**
 * Whether samples are windows of tokens that are read from a file on demand.
 *
 * @example
 * ```ts
 * console.log(isFileWindows(arrayRecords({ inputs: NdArray.from([1, 2], [2, 1]) }))); // false
 * ```
 */
export const isFileWindows = (samples: Samples): samples is FileWindows => "file" in samples;

/**
 * Makes samples from all images of a source, with the field `labels` i32 [].
 *
 * @param size Number of rows and columns of a sample. A sample is the center crop, or another region, of a decoded
 * image.
 */
export const encodedRecords = (images: EncodedImages, size: readonly [number, number]): EncodedRecords => {
  const { channels } = images.decoding;
  const labels: Field = {
    bytes: new Uint8Array(images.source.labels.buffer),
    offsetBytes: 0,
    strideBytes: 4,
    dtype: "i32",
    shape: [],
  };
  return {
    count: images.source.count,
    fields: { inputs: { dtype: "u8", shape: [...size, channels] }, labels: { dtype: "i32", shape: [] } },
    stored: { labels },
    images,
    firstImage: 0,
  };
};
