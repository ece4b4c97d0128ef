import type { TensorSpec } from "@skein/tensor-core";
import { type Decoding, isEncoded, type Samples } from "../encoded-records.ts";
import type { LanePosition } from "./lane.ts";

/** Shards of texts: text, JSON Lines or Parquet files. */
export interface TextShards {
  readonly of: "texts";
  readonly field: string;
  /**
   * Text inserted between documents. Default: the tokenizer's end-of-text token, or an empty line if no such token
   * exists.
   */
  readonly separator?: string | undefined;
  /**
   * Location of the tokenizer, and file URL of the module from which its package is resolved. Absent: each byte of
   * UTF-8 is a token.
   */
  readonly tokenizer?: { readonly place: string; readonly from: string } | undefined;
  readonly window: number;
}

/** Shards of images: WebDataset archives or Parquet files. */
export interface ImageShards {
  readonly of: "webdataset" | "image-parquet";
  /** Extension of the image file, or name of the image column. */
  readonly image?: string | undefined;
  readonly label: string;
  /** Key of the label in a JSON label file. */
  readonly field: string;
  /** Class names in the order of labels. */
  readonly classes: readonly string[];
  readonly decoding: Decoding;
  readonly decodesBy: "sharp" | "napi-rs";
  /** Name and version of the decoder. Other versions may round differently. */
  readonly decoder: string;
  /** Maximum number of concurrent decodes per decoding thread. */
  readonly decodesAtOnce: number;
  /** File URL of the module from which the decoder package is resolved. */
  readonly from: string;
}

/** Shards that are read sequentially and repeatedly. Plain data, so that it can be posted to threads. */
export interface SampleStream {
  /** Paths and URLs of the shards. */
  readonly shards: readonly string[];
  readonly samples: TextShards | ImageShards;
  /** Whether unusable samples are skipped instead of causing an error. */
  readonly skipDamaged: boolean;
  /** Number of samples that are shuffled together, over all lanes. */
  readonly shuffleBuffer: number;
  /** Maximum number of shards read concurrently over all ranks. Default: 8, or the number of ranks if larger. */
  readonly shardsAtOnce?: number | undefined;
  /** SHA-256 over the shard names, the sizes of local shards, and the options for making samples. */
  readonly digest: string;
}

/** Samples of a stream, without random access. */
export interface StreamedRecords {
  /** Number of samples: Infinity, because the number is unknown. */
  readonly count: number;
  /** Tensor specs of one sample, by field name. */
  readonly fields: { readonly [name: string]: TensorSpec };
  readonly stream: SampleStream;
}

/** Training samples in memory, in files, or in a stream. */
export type TrainingSamples = Samples | StreamedRecords;

/**
 * Whether samples come from a stream.
 *
 * @example
 * ```ts
 * console.log(isStreamed(arrayRecords({ inputs: NdArray.from([1, 2], [2, 1]) }))); // false
 * ```
 */
export const isStreamed = (samples: TrainingSamples): samples is StreamedRecords => "stream" in samples;

/** Returns the image decoder, with its version. Undefined if samples are not decoded when batches are read. */
export const decoderOf = (samples: TrainingSamples): string | undefined => {
  if (!isStreamed(samples)) return isEncoded(samples) ? samples.images.decoder : undefined;
  const { samples: shards } = samples.stream;
  return shards.of === "texts" ? undefined : shards.decoder;
};

const defaultShardsAtOnce = 8;

/**
 * Returns the number of lanes of a stream: the number of shards read concurrently, reduced until it divides the batch
 * size. Each rank reads the lanes that overlap the rank's share of a batch.
 *
 * @param worldSize Number of ranks. Has no effect if the stream specifies `shardsAtOnce`.
 */
export const numLanesOf = (
  { shards, shardsAtOnce }: Pick<SampleStream, "shards" | "shardsAtOnce">,
  { batchSize, worldSize }: { readonly batchSize: number; readonly worldSize: number },
): number => {
  let lanes = Math.min(shards.length, shardsAtOnce ?? Math.max(defaultShardsAtOnce, worldSize), batchSize);
  while (batchSize % lanes !== 0) lanes--;
  return lanes;
};

/** Returns the number of samples that are shuffled together in each lane. */
export const blockSizeOf = ({ shuffleBuffer }: Pick<SampleStream, "shuffleBuffer">, numLanes: number): number =>
  Math.ceil(shuffleBuffer / numLanes);

/** A lane read by a rank, and the position of the lane. */
export interface PlacedLane {
  readonly lane: number;
  readonly position: LanePosition;
}
