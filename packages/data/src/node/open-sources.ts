import { createHash } from "node:crypto";
import {
  encodedRecords,
  type Decoding,
  type EncodedRecords,
  type ImageSource,
  imageState,
} from "../encoded-records.ts";
import { imageCache } from "./image-cache.ts";
import { type DecoderName, imageDecoder } from "./image-decoder.ts";
import { imageDigests } from "./image-digests.ts";
import { imagePlace, noSoundImage } from "./image-source.ts";

/** How images are decoded while batches are taken. */
export interface LazyOptions {
  /** Megabytes (10⁶ bytes) of decoded images that stay in memory, of all threads of a process together. */
  readonly cacheMegabytes: number;
  /** Rows and columns to which images are decoded, at least those of a sample. Default: those. */
  readonly decodeSize?: readonly [number, number] | undefined;
  /** How many images each thread that assembles batches decodes at once. Default: four for each thread of libuv. */
  readonly decodesAtOnce?: number | undefined;
  /**
   * Folder in which digests of images are kept, so that those whose files are as they were need not be read when they
   * are opened again; it may hold up to 1 GiB. Default: all images are read.
   */
  readonly digestFolder?: string | undefined;
}

/** Sources that were opened. */
export interface OpenedSources {
  readonly records: readonly EncodedRecords[];
  /** Images that cannot be read, where such are to be skipped. */
  readonly unread: readonly string[];
  /** Lines for people. */
  readonly remarks: readonly string[];
}

/** Threads that decode, of all ranks of a process together. Their number is libuv's to say. */
export const decodingThreads = (): number => Number(process.env["UV_THREADPOOL_SIZE"] ?? 4) || 1;

const decodesPerThread = 4;

/**
 * How many images a thread that assembles batches decodes at once where nobody says. While one is on a thread of
 * libuv, others wait for one: that thread resizes, too, and would let them run dry between two calls.
 */
export const defaultDecodesAtOnce = (): number => decodesPerThread * decodingThreads();

/**
 * Samples of images that stay encoded. Each is read once, or looked at where what it holds is known (see
 * `imageDigests`), which says whether it is there and what the data are; whether it is sound shows when it is decoded.
 *
 * @throws DataError for an image that cannot be read.
 */
export const openSources = async (
  sources: readonly ImageSource[],
  {
    cacheMegabytes,
    decodesAtOnce,
    digestFolder,
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
): Promise<OpenedSources> => {
  const decoder = imageDecoder(from, decodesBy).version;
  const decoding: Decoding = { size: decodeSize, channels, fit, resize, resample };
  const count = sources.reduce((sum, source) => sum + source.count, 0);
  const cache = imageCache(cacheMegabytes * 1e6, decodeSize[0] * decodeSize[1] * channels, count);
  const unread: string[] = [];
  const states = sources.map((source) => new Int32Array(new SharedArrayBuffer(4 * source.count)));
  const leaveOut = (source: number, index: number): void => {
    states[source]![index] = imageState.damaged;
    unread.push(imagePlace(sources[source]!, index));
  };
  const { digests, remarks } = await imageDigests(
    sources,
    { atOnce: defaultDecodesAtOnce(), folder: digestFolder },
    skipDamaged ? leaveOut : undefined,
  );
  const records = sources.map((source, i) => {
    if (states[i]!.every((state) => state === imageState.damaged)) throw noSoundImage(source, source.count);
    const digest = createHash("sha256")
      .update(JSON.stringify([source.count, decoding]))
      .update(new Uint8Array(source.labels.buffer))
      .update(digests[i]!)
      .digest("hex");
    return encodedRecords(
      {
        source,
        decoding,
        decodesBy,
        decoder,
        digest,
        cache,
        states: states[i]!,
        skipDamaged,
        decodesAtOnce: decodesAtOnce ?? defaultDecodesAtOnce(),
        from,
      },
      size,
    );
  });
  return { records, unread, remarks };
};
