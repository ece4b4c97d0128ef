import type { TensorSpec } from "@skein/tensor-core";
import type { FileWindows } from "./file-windows.ts";
import type { Field, Records } from "./records.ts";
import type { ResamplingFilter } from "./resampling-filters.ts";
import type { TextTable } from "./text-table.ts";

/** How images of any size are decoded into samples of one size. */
export interface Decoding {
  /** Rows and columns. */
  readonly size: readonly [number, number];
  /** RGB (3), or gray (1). */
  readonly channels: 1 | 3;
  /** Crop to fill (cover), pad with black (contain), or stretch. */
  readonly fit: "cover" | "contain" | "stretch";
  /**
   * Used instead of `fit`: resize images to this size, at least `size`, then take the center crop. A number is the
   * shorter side, with the longer side in proportion; [rows, columns] stretch. Pixels equal those of Hugging Face's
   * image processors. Absent: see `fit`.
   */
  readonly resize?: number | readonly [number, number] | undefined;
  /**
   * Resampling filter of Pillow; results are bitwise equal to Pillow's, independent of the decoder. Absent: the decoder
   * resizes (sharp by Lanczos, after decoding a JPEG at reduced size if possible; `@napi-rs/image` by `bilinear`); with
   * `resize`: `bilinear`.
   */
  readonly resample?: ResamplingFilter | undefined;
}

/** Whether images are resized by this package instead of the decoder. */
export const isResizedHere = ({ resize, resample }: Pick<Decoding, "resize" | "resample">): boolean =>
  resize !== undefined || resample !== undefined;

/** Encoded images in a fixed order, and their locations. */
export interface ImageSource {
  readonly count: number;
  /** Paths of the image files. */
  readonly paths: TextTable;
  /** Bytes of all images, concatenated, if they were read beforehand. */
  readonly stored?: Uint8Array<SharedArrayBuffer> | undefined;
  /** Parts of those files, or of `stored`, that hold the images: names, byte offsets and sizes. */
  readonly parts?:
    | {
        readonly names: TextTable;
        /** f64 [count], like `sizes`. */
        readonly begins: Float64Array<SharedArrayBuffer>;
        readonly sizes: Float64Array<SharedArrayBuffer>;
      }
    | undefined;
  /** i32 [count]. */
  readonly labels: Int32Array<SharedArrayBuffer>;
  /** The manifest file and the line number of each image. Absent: no manifest. */
  readonly manifest?: { readonly file: string; readonly lines: Int32Array<SharedArrayBuffer> } | undefined;
}

/** Decoded images kept in memory, shared by all sources of a data set and by all threads. */
export interface ImageCache {
  /** Concatenated images. */
  readonly pixels: Uint8Array<SharedArrayBuffer>;
  /** Size of one image, bytes. */
  readonly imageBytes: number;
  /** Maximum number of images. */
  readonly capacity: number;
  /** Number of slots reserved so far, one i32; may exceed `capacity`. */
  readonly numReserved: Int32Array<SharedArrayBuffer>;
}

/** Images that are read and decoded on demand. Plain data over shared memory, so that it can be posted to threads. */
export interface EncodedImages {
  readonly source: ImageSource;
  readonly decoding: Decoding;
  /** Decoder of the images. */
  readonly decodesBy: "sharp" | "napi-rs";
  /** Decoder with its version; another version may round differently. */
  readonly decoder: string;
  /** SHA-256 of the encoded bytes in their order, of the labels, and of the decoding options. */
  readonly digest: string;
  readonly cache: ImageCache;
  /** State of each image, see `imageState`; shared by all threads. i32 [count]. */
  readonly states: Int32Array<SharedArrayBuffer>;
  /** Whether a damaged image is replaced by the next intact image. */
  readonly skipDamaged: boolean;
  /** Maximum number of concurrent decodes per decoding thread. */
  readonly decodesAtOnce: number;
  /** File URL of the module from which the decoder package is resolved. */
  readonly from: string;
}

/** Values of `EncodedImages.states`. A positive value is the image's slot in the cache plus 1. */
export const imageState = { unknown: 0, damaged: -1, caching: -2 } as const;

/** Samples with a field `inputs`, u8 [rows, columns, channels], that is decoded when a batch needs it. */
export interface EncodedRecords {
  readonly count: number;
  /** Tensor specs of one sample, by field. */
  readonly fields: { readonly [name: string]: TensorSpec };
  /** Fields that are in memory. */
  readonly stored: { readonly [name: string]: Field };
  readonly images: EncodedImages;
  /** Image index of sample 0; sample i has image `firstImage` + i. */
  readonly firstImage: number;
  /** Image order of drawn samples: sample i has image `order[firstImage + i]`. Absent: images in their own order. */
  readonly order?: Int32Array<SharedArrayBuffer> | undefined;
}

/** Samples in memory or in files. */
export type Samples = Records | EncodedRecords | FileWindows;

/** Whether samples are encoded in files and are decoded on demand. */
export const isEncoded = (samples: Samples): samples is EncodedRecords => "images" in samples;

/** Whether samples are windows of tokens that stay in their file. */
export const isFileWindows = (samples: Samples): samples is FileWindows => "file" in samples;

/**
 * Makes samples of all images of a source, with the field `labels` i32 [].
 *
 * @param size rows and columns of a sample: the center crop of an image decoded at a larger size, or a region of it.
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
