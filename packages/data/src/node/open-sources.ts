import { createHash } from "node:crypto";
import {
  encodedRecords,
  type Decoding,
  type EncodedRecords,
  type ImageSource,
  imageState,
} from "../encoded-records.ts";
import { eachOf } from "./each-of.ts";
import { imageCache } from "./image-cache.ts";
import { type DecoderName, imageDecoder } from "./image-decoder.ts";
import { imagePlace, noSoundImage, readImage } from "./image-source.ts";

/** How images are decoded while batches are taken. */
export interface LazyOptions {
  /** Megabytes (10⁶ bytes) of decoded images that stay in memory, of all threads of a process together. */
  readonly cacheMegabytes: number;
  /** Rows and columns to which images are decoded, at least those of a sample. Default: those. */
  readonly decodeSize?: readonly [number, number] | undefined;
  /** How many images each thread that assembles batches decodes at once. Default: four for each thread of libuv. */
  readonly decodesAtOnce?: number | undefined;
}

/** Threads that decode, of all ranks of a process together. Their number is libuv's to say. */
export const decodingThreads = (): number => Number(process.env["UV_THREADPOOL_SIZE"] ?? 4) || 1;

const decodesPerThread = 4;

/**
 * How many images a thread that assembles batches decodes at once where nobody says. While one is on a thread of
 * libuv, others wait for one: that thread resizes, too, and would let them run dry between two calls.
 */
export const defaultDecodesAtOnce = (): number => decodesPerThread * decodingThreads();

/** SHA-256 of each image's bytes, in their order. @param unread is told of images that cannot be read. */
const digests = async (source: ImageSource, unread: ((index: number) => void) | undefined): Promise<Uint8Array> => {
  const all = new Uint8Array(32 * source.count);
  await eachOf(source.count, defaultDecodesAtOnce(), async (index) => {
    let bytes: Uint8Array;
    try {
      bytes = await readImage(source, index);
    } catch (error) {
      if (unread === undefined) throw error;
      unread(index);
      return;
    }
    all.set(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)), 32 * index);
  });
  return all;
};

/**
 * Samples of images that stay encoded. Each is read once, which says whether it is there and what the data are; whether
 * it is sound shows when it is decoded.
 *
 * @param damaged takes the paths of images that cannot be read, where such are to be skipped.
 * @throws DataError for an image that cannot be read.
 */
export const openSources = async (
  sources: readonly ImageSource[],
  {
    cacheMegabytes,
    decodesAtOnce,
    size,
    decodeSize = size,
    channels,
    fit,
    resize,
    resample,
    skipDamaged,
    decoder: decodesBy = "sharp",
    from,
  }: Decoding &
    LazyOptions & {
      readonly skipDamaged: boolean;
      readonly decoder?: DecoderName | undefined;
      readonly from: string;
    },
  damaged: string[],
): Promise<EncodedRecords[]> => {
  const decoder = imageDecoder(from, decodesBy).version;
  const decoding: Decoding = { size: decodeSize, channels, fit, resize, resample };
  const count = sources.reduce((sum, source) => sum + source.count, 0);
  const cache = imageCache(cacheMegabytes * 1e6, decodeSize[0] * decodeSize[1] * channels, count);
  const opened: EncodedRecords[] = [];
  for (const source of sources) {
    const states = new Int32Array(new SharedArrayBuffer(4 * source.count));
    const unread = (index: number): void => {
      states[index] = imageState.damaged;
      damaged.push(imagePlace(source, index));
    };
    const bytes = await digests(source, skipDamaged ? unread : undefined);
    if (states.every((state) => state === imageState.damaged)) throw noSoundImage(source, source.count);
    const digest = createHash("sha256")
      .update(JSON.stringify([source.count, decoding]))
      .update(new Uint8Array(source.labels.buffer))
      .update(bytes)
      .digest("hex");
    opened.push(
      encodedRecords(
        {
          source,
          decoding,
          decodesBy,
          decoder,
          digest,
          cache,
          states,
          skipDamaged,
          decodesAtOnce: decodesAtOnce ?? defaultDecodesAtOnce(),
          from,
        },
        size,
      ),
    );
  }
  return opened;
};
