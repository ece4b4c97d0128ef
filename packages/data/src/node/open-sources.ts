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
import { imageLocation, noSoundImage } from "./image-source.ts";

/** Options for decoding images when batches need them. */
export interface LazyOptions {
  /** Size of the cache of decoded images in MB (10⁶ bytes). All threads of a process share the cache. */
  readonly cacheMegabytes: number;
  /** Number of rows and columns of decoded images. Must be at least the sample size. Default: the sample size. */
  readonly decodeSize?: readonly [number, number] | undefined;
  /** Maximum number of concurrent decodes per batch-assembly thread. Default: four per libuv thread. */
  readonly decodesAtOnce?: number | undefined;
  /**
   * Folder that stores image digests (at most 1 GiB), so that unchanged images are not read when they are opened again.
   * Absent: all images are read.
   */
  readonly digestFolder?: string | undefined;
}

/** Opened image sources, and messages about them. */
export interface OpenedSources {
  readonly records: readonly EncodedRecords[];
  /** Names of unreadable images. Empty unless damaged images are skipped. */
  readonly unreadable: readonly string[];
  /** Remarks for the user, one line each. */
  readonly remarks: readonly string[];
}

/** Returns the number of decoding threads, which all ranks of a process share: the size of libuv's thread pool. */
export const decodingThreads = (): number => Number(process.env["UV_THREADPOOL_SIZE"] ?? 4) || 1;

const decodesPerThread = 4;

/**
 * Returns the default number of concurrent decodes per batch-assembly thread. More than one image per libuv thread is
 * requested, because the decoding threads would otherwise be idle while the assembling thread resizes an image.
 */
export const defaultDecodesAtOnce = (): number => decodesPerThread * decodingThreads();

/**
 * Makes samples from images without decoding them. Each image is read once, or only the metadata of its file if its
 * digest is known (see `imageDigests`). Reading shows that the file exists, and the digest identifies the data. Damaged
 * images are found only when they are decoded.
 *
 * @throws DataError if an image is unreadable.
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
  const unreadable: string[] = [];
  const states = sources.map((source) => new Int32Array(new SharedArrayBuffer(4 * source.count)));
  const leaveOut = (source: number, index: number): void => {
    states[source]![index] = imageState.damaged;
    unreadable.push(imageLocation(sources[source]!, index));
  };
  const { digests, remarks } = await imageDigests(
    sources,
    { concurrency: defaultDecodesAtOnce(), folder: digestFolder },
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
  return { records, unreadable, remarks };
};
