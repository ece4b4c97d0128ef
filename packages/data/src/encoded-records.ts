import type { TensorSpec } from "@skein/tensor-core";
import type { FiledWindows } from "./filed-windows.ts";
import type { Field, Records } from "./records.ts";
import type { ResamplingFilter } from "./resampling-filters.ts";
import type { TextTable } from "./text-table.ts";

/** How images of any size become samples of one. */
export interface Decoding {
  /** Rows and columns. */
  readonly size: readonly [number, number];
  /** Red, green and blue, or grey. */
  readonly channels: 1 | 3;
  /** Cut off what is too much, leave it black around, or stretch. */
  readonly fit: "cover" | "contain" | "stretch";
  /**
   * In place of `fit`: bring images to this size, at least `size`, and cut the middle out. A number is the shorter
   * side, the longer one in proportion; [rows, columns] stretch. As image processors of Hugging Face's do it, pixel by
   * pixel. Default: see `fit`.
   */
  readonly resize?: number | readonly [number, number] | undefined;
  /**
   * Resize as Pillow does by this filter, bit by bit, whatever decodes. Default: as the decoder does, sharp by Lanczos'
   * after it has decoded a JPEG as small as it may, `@napi-rs/image` by `bilinear`; with `resize`: `bilinear`.
   */
  readonly resample?: ResamplingFilter | undefined;
}

/** Whether images are to be resized here, and not by what decodes them. */
export const isResizedHere = ({ resize, resample }: Pick<Decoding, "resize" | "resample">): boolean =>
  resize !== undefined || resample !== undefined;

/** Where encoded images lie, in an order of their own. */
export interface ImageSource {
  readonly count: number;
  /** Paths of their files. */
  readonly paths: TextTable;
  /** The files' parts that are images, one after the other, where they were read already. */
  readonly stored?: Uint8Array<SharedArrayBuffer> | undefined;
  /** Which parts of those files, or of `stored`, they are: names, and from which byte on how many. */
  readonly parts?:
    | {
        readonly names: TextTable;
        /** f64 [count], as the sizes. */
        readonly begins: Float64Array<SharedArrayBuffer>;
        readonly sizes: Float64Array<SharedArrayBuffer>;
      }
    | undefined;
  /** i32 [count]. */
  readonly labels: Int32Array<SharedArrayBuffer>;
  /** The file that names them, and in which of its lines, where there is one. */
  readonly manifest?: { readonly file: string; readonly lines: Int32Array<SharedArrayBuffer> } | undefined;
}

/** Decoded images that stay in memory, those of all sources of a data set together; all threads share it. */
export interface ImageCache {
  /** Image after image. */
  readonly pixels: Uint8Array<SharedArrayBuffer>;
  /** Bytes of one. */
  readonly imageBytes: number;
  /** How many it has room for. */
  readonly capacity: number;
  /** How many places were given away; one number, which may be more than there are. */
  readonly given: Int32Array<SharedArrayBuffer>;
}

/** Images that are read and decoded when they are wanted. Plain data over shared memory, for posting to threads. */
export interface EncodedImages {
  readonly source: ImageSource;
  readonly decoding: Decoding;
  /** What decodes them. */
  readonly decodesBy: "sharp" | "napi-rs";
  /** The same with its version: another one may round otherwise. */
  readonly decoder: string;
  /** SHA-256 of the encoded bytes in their order, of the labels, and of how they are decoded. */
  readonly digest: string;
  readonly cache: ImageCache;
  /** What threads know of each image, see `imageState`. i32 [count]. */
  readonly states: Int32Array<SharedArrayBuffer>;
  /** Whether the next sound image takes the place of one that cannot be decoded. */
  readonly skipDamaged: boolean;
  /** How many are decoded at once, in each thread that does so. */
  readonly decodesAtOnce: number;
  /** File URL of the module whose dependencies are searched for the decoder. */
  readonly from: string;
}

/** A word of `EncodedImages.states`; a positive one is the image's place in the cache, counted from 1. */
export const imageState = { unknown: 0, damaged: -1, beingKept: -2 } as const;

/** Samples whose field `inputs`, u8 [rows, columns, channels], is decoded when a batch needs it. */
export interface EncodedRecords {
  readonly count: number;
  /** Specs of one sample. */
  readonly fields: { readonly [name: string]: TensorSpec };
  /** Those fields that lie in memory. */
  readonly stored: { readonly [name: string]: Field };
  readonly images: EncodedImages;
  /** The image of sample 0; that of sample i is `firstImage` + i. */
  readonly firstImage: number;
  /** Images of drawn samples: that of sample i is `order[firstImage + i]`. Absent: images in their own order. */
  readonly order?: Int32Array<SharedArrayBuffer> | undefined;
}

/** Samples in memory, or in files. */
export type Samples = Records | EncodedRecords | FiledWindows;

/** Whether samples lie in files, of which each is decoded when it is asked for. */
export const isEncoded = (samples: Samples): samples is EncodedRecords => "images" in samples;

/** Whether samples are windows of tokens that stay in their file. */
export const isFiled = (samples: Samples): samples is FiledWindows => "file" in samples;

/**
 * All images of a source as samples, with the field `labels` i32 [].
 *
 * @param size rows and columns of a sample: the middle of an image that is decoded larger, or a part of it.
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
