import { setImmediate } from "node:timers/promises";
import { type Augmentation, augmentImage, augmentationKey, type ImageSize, showMiddle } from "../../augment.ts";
import { DataError } from "../../errors.ts";
import { shardRange } from "../../order.ts";
import { batchLayout, sampleBytes } from "../../records.ts";
import { type Drawn, Lane } from "../../streams/lane.ts";
import { lanePartsOf } from "../../streams/lane-parts.ts";
import type { Tokens } from "../../streams/pack-windows.ts";
import type { ShardReader } from "../../streams/shard-place.ts";
import {
  blockSizeOf,
  type ImageShards,
  type PlacedLane,
  type StreamedRecords,
} from "../../streams/streamed-records.ts";
import type { DamagedImage } from "../image-reader.ts";
import { imageDecoder } from "../image-decoder.ts";
import { damagedImage, isShortOfMemory } from "../image-source.ts";
import { Turns } from "../turns.ts";
import { imageReader, type StreamedImage } from "./read-images.ts";
import { textReader } from "./read-texts.ts";

/** What a batch of a stream is filled by. */
export interface StreamFillerOptions {
  readonly batchSize: number;
  readonly seed: number;
  readonly rank: number;
  readonly worldSize: number;
  readonly numLanes: number;
  /** Where lanes stand. Default: at their beginnings. */
  readonly lanes?: readonly PlacedLane[] | undefined;
  readonly augmentation: Augmentation | undefined;
  readonly damaged: (image: DamagedImage) => void;
}

/** Write a sample as number `i` of a batch. */
type Writer<Of> = (drawn: Drawn<Of>, lane: number, target: Uint8Array, i: number) => Promise<void> | void;

/** Batches of a stream. */
export interface StreamFiller {
  /** Write the next batch; resolves with where the lanes of this rank stand behind it. Several may be under way. */
  fill(target: Uint8Array): Promise<readonly PlacedLane[]>;
  /** What is read at the moment, where something is. */
  readonly reading: Promise<unknown> | undefined;
}

/** Of a thread, between which it hears of others. */
const turnMilliseconds = 5;

/** The same samples; who reads many of them at once lets others have turns. */
const inTurns = <Of>(read: ShardReader<Of>): ShardReader<Of> => {
  let began = performance.now();
  return async function* (shard, from) {
    for await (const sample of read(shard, from)) {
      if (performance.now() - began > turnMilliseconds) {
        await setImmediate();
        began = performance.now();
      }
      yield sample;
    }
  };
};

const fillerOf = <Of>(
  records: StreamedRecords,
  { batchSize, seed, rank, worldSize, numLanes, lanes: placed = [] }: StreamFillerOptions,
  read: ShardReader<Of>,
  write: Writer<Of>,
): StreamFiller => {
  const { stream } = records;
  const width = batchSize / numLanes;
  const options = { seed, numShards: stream.shards.length, numLanes, blockSize: blockSizeOf(stream, numLanes) };
  const parts = lanePartsOf(shardRange(batchSize, { rank, worldSize }), width, numLanes).map((part) => ({
    ...part,
    of: new Lane(inTurns(read), part.lane, options, placed.find(({ lane }) => lane === part.lane)?.position),
  }));
  return {
    fill: (target) =>
      Promise.all(
        parts.map(async ({ lane, begin, end, at, of }) => {
          const { samples, position } = await of.draw(width);
          await Promise.all(samples.slice(begin, end).map((drawn, i) => write(drawn, lane, target, at + i)));
          return { lane, position };
        }),
      ),
    get reading() {
      const all = parts.flatMap(({ of }) => of.reading ?? []);
      return all.length === 0 ? undefined : Promise.race(all);
    },
  };
};

const numSamplesOf = ({ batchSize, worldSize }: StreamFillerOptions): number => batchSize / worldSize;

/** Windows: all but the last token, and all but the first. */
const windowWriter = ({ fields }: StreamedRecords, numSamples: number): Writer<Tokens> => {
  const bytes = sampleBytes(fields["inputs"]!);
  const { offsets } = batchLayout({ count: numSamples, fields }, numSamples);
  return ({ sample }, _, target, i) => {
    const row = new Uint8Array(sample.buffer, sample.byteOffset, sample.byteLength);
    target.set(row.subarray(0, bytes), offsets["inputs"]! + i * bytes);
    target.set(row.subarray(row.length - bytes), offsets["labels"]! + i * bytes);
  };
};

/**
 * In the place of a damaged image, where such are to be skipped, comes the next sound one of those that it was shuffled
 * with: the same for all ranks, and wherever a run goes on.
 */
const imageWriter = (
  { fields, stream }: StreamedRecords,
  { decoding, decodesBy, decodesAtOnce, from }: ImageShards,
  options: StreamFillerOptions,
): Writer<StreamedImage> => {
  const { augmentation, seed, damaged } = options;
  const decoder = imageDecoder(from, decodesBy);
  const turns = new Turns(decodesAtOnce);
  const bytes = sampleBytes(fields["inputs"]!);
  const size = fields["inputs"]!.shape as unknown as ImageSize;
  const decodedSize: ImageSize = [...decoding.size, decoding.channels];
  const count = numSamplesOf(options);
  const { offsets } = batchLayout({ count, fields }, count);
  const [inputs, labels] = [offsets["inputs"]!, offsets["labels"]!];
  const pixelsOf = (image: StreamedImage): Promise<Uint8Array | undefined> =>
    turns.take(async () => {
      try {
        return await decoder.decode(image.bytes, decoding);
      } catch (cause) {
        if (!stream.skipDamaged || isShortOfMemory(cause)) throw damagedImage(image.name, cause as Error);
        damaged({ name: image.name, why: (cause as Error).message });
        return undefined;
      }
    });
  return async ({ block, index, ordinal }, lane, target, i) => {
    for (let further = 0; further < block.length; further++) {
      const image = block[(index + further) % block.length]!;
      const pixels = await pixelsOf(image);
      if (pixels === undefined) continue;
      const shown = target.subarray(inputs + i * bytes, inputs + (i + 1) * bytes);
      // By the sample that was drawn: the one that takes its place is not shown twice alike.
      if (augmentation === undefined) showMiddle(pixels, decodedSize, shown, size);
      else augmentImage(pixels, decodedSize, shown, size, augmentation, augmentationKey(seed, lane, ordinal));
      new DataView(target.buffer, target.byteOffset + labels + 4 * i, 4).setInt32(0, image.label, true);
      return;
    }
    throw new DataError(
      `none of ${block.length} images from ${block[0]!.name} on can be decoded; restore them, or raise stream.shuffleBuffer`,
    );
  };
};

/** Tells of each image but once, however often it comes by. */
const toldOnce = (damaged: (image: DamagedImage) => void): ((image: DamagedImage) => void) => {
  const told = new Set<string>();
  return (image) => {
    if (!told.has(image.name)) damaged(image);
    told.add(image.name);
  };
};

/** @throws DataError where a package is not there. */
export const streamFiller = (records: StreamedRecords, given: StreamFillerOptions): StreamFiller => {
  const { stream } = records;
  const { samples } = stream;
  const damaged = toldOnce(given.damaged);
  const options = { ...given, damaged };
  const left = (name: string, why: string): void => damaged({ name, why, isLeftOut: true });
  return samples.of === "texts"
    ? fillerOf(records, options, textReader(stream, samples, left), windowWriter(records, numSamplesOf(options)))
    : fillerOf(records, options, imageReader(stream, samples, left), imageWriter(records, samples, options));
};
