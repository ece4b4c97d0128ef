import type { TensorSpec } from "@skein/tensor-core";
import { type Decoding, isEncoded, type Samples } from "../encoded-records.ts";
import type { LanePosition } from "./lane.ts";

/** Texts in shards: files of text, of JSON lines or of Parquet. */
export interface TextShards {
  readonly of: "texts";
  readonly field: string;
  /** Between texts. Default: the token that ends a text, where the tokenizer has one, or an empty line. */
  readonly separator?: string | undefined;
  /** Default: each byte of UTF-8 is a token. */
  readonly tokenizer?: { readonly place: string; readonly from: string } | undefined;
  readonly window: number;
}

/** Images in shards of WebDataset or in rows of Parquet. */
export interface ImageShards {
  readonly of: "webdataset" | "image-parquet";
  /** What a sample's file, or the column, of its image is called. */
  readonly image?: string | undefined;
  readonly label: string;
  /** Key of the label, where that is JSON. */
  readonly field: string;
  /** Names of classes in the order of their numbers. */
  readonly classes: readonly string[];
  readonly decoding: Decoding;
  readonly decodesBy: "sharp" | "napi-rs";
  /** The same with its version: another one may round otherwise. */
  readonly decoder: string;
  /** How many are decoded at once, in each thread that does so. */
  readonly decodesAtOnce: number;
  /** File URL of the module whose dependencies are searched for the decoder. */
  readonly from: string;
}

/** Shards that are read from their beginnings to their ends, over and over. Plain data, for posting to threads. */
export interface SampleStream {
  /** Paths and addresses. */
  readonly shards: readonly string[];
  readonly samples: TextShards | ImageShards;
  /** Leave out what cannot be used, instead of giving up. */
  readonly skipDamaged: boolean;
  /** Samples that are shuffled together, of all lanes. */
  readonly shuffleBuffer: number;
  /** How many shards are read at once, by all ranks together; at most. Default: 8, or as many as there are ranks. */
  readonly shardsAtOnce?: number | undefined;
  /** SHA-256 of what the shards are called, of the sizes of those here, and of how samples are made of them. */
  readonly digest: string;
}

/** Samples that come by and are gone: nobody knows how many there are, or where one lies. */
export interface StreamedRecords {
  /** Infinite. */
  readonly count: number;
  /** Specs of one sample. */
  readonly fields: { readonly [name: string]: TensorSpec };
  readonly stream: SampleStream;
}

/** Samples to learn from. */
export type TrainingSamples = Samples | StreamedRecords;

/** Whether samples come by, and nobody knows how many there are. */
export const isStreamed = (samples: TrainingSamples): samples is StreamedRecords => "stream" in samples;

/** What decodes images of samples while batches are taken, with its version, if anything does. */
export const decoderOf = (samples: TrainingSamples): string | undefined => {
  if (!isStreamed(samples)) return isEncoded(samples) ? samples.images.decoder : undefined;
  const { samples: shards } = samples.stream;
  return shards.of === "texts" ? undefined : shards.decoder;
};

const defaultShardsAtOnce = 8;

/**
 * How many lanes a stream has: as many as shards are read at once, but so that all give the same part of a batch. Each
 * rank reads those lanes that its part of a batch is of.
 *
 * @param worldSize ranks that share a batch out; does not enter where the stream says how many shards are read at once.
 */
export const numLanesOf = (
  { shards, shardsAtOnce }: Pick<SampleStream, "shards" | "shardsAtOnce">,
  { batchSize, worldSize }: { readonly batchSize: number; readonly worldSize: number },
): number => {
  let lanes = Math.min(shards.length, shardsAtOnce ?? Math.max(defaultShardsAtOnce, worldSize), batchSize);
  while (batchSize % lanes !== 0) lanes--;
  return lanes;
};

/** Samples that are shuffled together in each lane. */
export const blockSizeOf = ({ shuffleBuffer }: Pick<SampleStream, "shuffleBuffer">, numLanes: number): number =>
  Math.ceil(shuffleBuffer / numLanes);

/** A lane that a rank reads, and where it stands. */
export interface PlacedLane {
  readonly lane: number;
  readonly position: LanePosition;
}
