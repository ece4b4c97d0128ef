import { availableParallelism } from "node:os";
import type { Decoding, EncodedRecords, ImageSource, Samples } from "../encoded-records.ts";
import { byteRecords, type Records } from "../records.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { forEachConcurrently } from "./for-each-concurrently.ts";
import { findImages, type FoundImages, type ImageFile } from "./find-images.ts";
import { someOf } from "./files-below.ts";
import { type DecoderName, imageDecoder } from "./image-decoder.ts";
import {
  damagedImage,
  imageName,
  imageLocation,
  imageSource,
  isShortOfMemory,
  noSoundImage,
  readImage,
} from "./image-source.ts";
import { decodingThreads, type LazyOptions, openSources } from "./open-sources.ts";
import { findInShards, type ShardOptions } from "./find-in-shards.ts";
import { readManifest } from "./read-manifest.ts";
import { requireMemory } from "./require-memory.ts";

/** Options for loading images of any size as samples of one size. */
export interface ImageOptions extends Decoding {
  /** Fraction of the images to hold out, unless the data set has separate test images. */
  readonly testFraction: number;
  /** Whether images that cannot be decoded are skipped instead of causing an error. */
  readonly skipDamaged: boolean;
  /** Decoder package. Default: sharp. */
  readonly decoder?: DecoderName | undefined;
  /** File URL of the module from which decoder packages are resolved: `import.meta.url`. */
  readonly from: string;
}

/** Samples of images, and remarks for the user. */
export interface Images<Of extends Samples = Records> {
  readonly train: Of;
  readonly test: Of;
  readonly classes: number;
  /** Class names, by label. */
  readonly classNames: readonly string[];
  /** Remarks for the user, one line each. */
  readonly remarks: readonly string[];
}

/** Maximum number of classes listed by name. */
const maxListedClasses = 50;

/** Decodes all images of a source, before training. */
const recordsOf = async (
  source: ImageSource,
  decoder: ImageDecoder,
  options: ImageOptions,
  damaged: string[],
): Promise<Records> => {
  const { size, channels, skipDamaged } = options;
  const shape = [...size, channels];
  const each = size[0] * size[1] * channels;
  requireMemory(
    source.count * each,
    `${source.count} images of ${shape.join("×")}, decoded,`,
    "use a smaller size or fewer images, or decode them during training: cacheMegabytes limits the decoded images in memory",
  );
  const pixels = new Uint8Array(new SharedArrayBuffer(source.count * each));
  const isSound: boolean[] = [];
  let why: string | undefined;
  await forEachConcurrently(source.count, availableParallelism(), async (index) => {
    isSound[index] = false;
    try {
      const bytes = await readImage(source, index);
      const image = await decoder.decode(bytes, options).catch((cause: Error) => {
        throw damagedImage(imageName(source, index), cause);
      });
      pixels.set(image, index * each);
    } catch (error) {
      if (!skipDamaged || isShortOfMemory((error as Error).cause)) throw error;
      damaged.push(imageLocation(source, index));
      if (index === 0) why = ((error as Error).cause as Error | undefined)?.message;
      return;
    }
    isSound[index] = true;
  });
  let count = 0;
  const labels = new Int32Array(new SharedArrayBuffer(4 * source.count));
  for (const [index, label] of source.labels.entries()) {
    if (!isSound[index]!) continue;
    if (count !== index) pixels.copyWithin(count * each, index * each, (index + 1) * each);
    labels[count++] = label;
  }
  if (count === 0) throw noSoundImage(source, source.count, why);
  return byteRecords(count, {
    inputs: { bytes: pixels, offsetBytes: 0, strideBytes: each, dtype: "u8", shape },
    labels: { bytes: new Uint8Array(labels.buffer), offsetBytes: 0, strideBytes: 4, dtype: "i32", shape: [] },
  });
};

const remarksOn = (
  { classes, others, incomplete = [] }: FoundImages,
  { decoder }: Pick<ImageOptions, "decoder">,
  { train, test }: Pick<Images<Samples>, "train" | "test">,
  further: readonly string[],
): string[] => [
  `${train.count} training images, ${test.count} test images, ${classes.length} classes: ${classes.length <= maxListedClasses ? classes.join(", ") : someOf(classes)}`,
  ...further,
  ...(decoder === "napi-rs"
    ? ["ordinary JPEGs are decoded by @napi-rs/image, other images by sharp; their pixels differ a little"]
    : []),
  ...(incomplete.length === 0
    ? []
    : [`${incomplete.length} samples without an image or a label were skipped: ${someOf(incomplete)}`]),
  ...(others.length === 0
    ? []
    : [
        `${others.length === 1 ? "1 file is not an image" : `${others.length} files are not images`}: ${someOf(others)}`,
      ]),
];

/** Decodes images into shared memory, see `loadImageFolder`. */
export const loadFoundImages = async (found: FoundImages, options: ImageOptions): Promise<Images> => {
  const decoder = imageDecoder(options.from, options.decoder ?? "sharp");
  const damaged: string[] = [];
  const recordsIn = (files: FoundImages["train"]): Promise<Records> =>
    recordsOf(imageSource(files, found.manifest), decoder, options, damaged);
  const train = await recordsIn(found.train);
  const test = await recordsIn(found.test);
  const left =
    damaged.length === 0 ? [] : [`${damaged.length} damaged images were skipped: ${someOf(damaged.toSorted())}`];
  return {
    train,
    test,
    classes: found.classes.length,
    classNames: found.classes,
    remarks: remarksOn(found, options, { train, test }, left),
  };
};

/**
 * Loads test images that are separate from the training images. Images are decoded into memory or, with `lazy`, when
 * batches need them.
 */
export const loadTestImages = async (
  files: readonly ImageFile[],
  options: ImageOptions,
  lazy: LazyOptions | undefined,
): Promise<{ readonly records: Samples; readonly remarks: readonly string[] }> => {
  const source = imageSource(files, undefined);
  const skippedRemarks = (damaged: readonly string[]): string[] =>
    damaged.length === 0 ? [] : [`${damaged.length} damaged test images were skipped: ${someOf(damaged.toSorted())}`];
  if (lazy === undefined) {
    const damaged: string[] = [];
    const decoder = imageDecoder(options.from, options.decoder ?? "sharp");
    return { records: await recordsOf(source, decoder, options, damaged), remarks: skippedRemarks(damaged) };
  }
  const { records, unreadable, remarks } = await openSources([source], { ...options, ...lazy });
  return { records: records[0]!, remarks: [...skippedRemarks(unreadable), ...remarks] };
};

/** Opens images that are decoded when batches need them; see `openImageFolder`. */
export const openFoundImages = async (
  found: FoundImages,
  options: ImageOptions & LazyOptions,
): Promise<Images<EncodedRecords>> => {
  const sources = [found.train, found.test].map((files) => imageSource(files, found.manifest));
  const { records, unreadable, remarks } = await openSources(sources, options);
  const [train, test] = records as [EncodedRecords, EncodedRecords];
  const { cache, decodesAtOnce } = train.images;
  const further = [
    `images are decoded during training, ${decodesAtOnce} at once per rank, on ${decodingThreads()} threads per process (environment variable UV_THREADPOOL_SIZE); the cache holds ${cache.capacity} of ${train.count + test.count}`,
    ...(unreadable.length === 0
      ? []
      : [`${unreadable.length} images cannot be read and are replaced by others: ${someOf(unreadable.toSorted())}`]),
    ...remarks,
  ];
  return {
    train,
    test,
    classes: found.classes.length,
    classNames: found.classes,
    remarks: remarksOn(found, options, { train, test }, further),
  };
};

/**
 * Loads images from one folder per class (see `findImages`), and decodes them into shared memory. Fields: `inputs` u8
 * [rows, columns, channels] and `labels` i32 [], in the order of class names. Package `sharp` decodes JPEG, PNG, WebP,
 * AVIF, GIF and TIFF. With `decoder: "napi-rs"`, `@napi-rs/image` decodes ordinary JPEGs (see `jpegDecoder`).
 *
 * Cost: each image is decoded once, on all cores, before training. Samples need `count · rows · columns · channels`
 * bytes.
 *
 * @throws DataError if the package is not installed, if a folder has no classes of images, or if an image cannot be
 * decoded and such images are not skipped.
 */
export const loadImageFolder = async ({
  folder,
  ...options
}: ImageOptions & { readonly folder: string }): Promise<Images> =>
  loadFoundImages(findImages(folder, options.testFraction), options);

/**
 * Loads the images listed in a manifest (see `readManifest`), like `loadImageFolder`.
 *
 * @throws DataError, also with file and line number if a line is damaged.
 */
export const loadImageManifest = async ({
  file,
  ...options
}: ImageOptions & { readonly file: string }): Promise<Images> =>
  loadFoundImages(readManifest(file, options.testFraction), options);

/**
 * Opens the samples of `loadImageFolder` without decoding their images. The thread that assembles batches
 * (`Prefetcher`, `readEvaluationBatches`) decodes each image when a batch needs it, and finds damaged images only then.
 * With `skipDamaged`, the next intact image replaces a damaged image, so that the number of samples is unchanged.
 *
 * Cost: opening reads each image once to compute its digest, or only the file's metadata if `digestFolder` contains the
 * digest. Each epoch reads and decodes all images that are not in the cache. Memory: the cache, and per image a path, a
 * label and a state word.
 *
 * @throws DataError like `loadImageFolder`, except that an image causes the error if it cannot be read, but not if it
 * cannot be decoded. Also throws if memory for the cache is insufficient.
 */
export const openImageFolder = async ({
  folder,
  ...options
}: ImageOptions & LazyOptions & { readonly folder: string }): Promise<Images<EncodedRecords>> =>
  openFoundImages(findImages(folder, options.testFraction), options);

/**
 * Opens the images listed in a manifest (see `readManifest`), like `openImageFolder`.
 *
 * @throws DataError, also with file and line number if a line is damaged.
 */
export const openImageManifest = async ({
  file,
  ...options
}: ImageOptions & LazyOptions & { readonly file: string }): Promise<Images<EncodedRecords>> =>
  openFoundImages(readManifest(file, options.testFraction), options);

/**
 * Loads images in WebDataset shards (see `findInShards`), like `loadImageFolder`.
 *
 * @throws DataError, also if a shard is damaged, or a sample has no image or no label.
 */
export const loadImageShards = async ({
  shards,
  ...options
}: ImageOptions & { readonly shards: ShardOptions }): Promise<Images> =>
  loadFoundImages(await findInShards(shards, options), options);

/**
 * Opens images in WebDataset shards (see `findInShards`), like `openImageFolder`. For shards on web servers, each image
 * that is not in the cache costs one request.
 *
 * @throws DataError, also if a shard is damaged, or a sample has no image or no label.
 */
export const openImageShards = async ({
  shards,
  ...options
}: ImageOptions & LazyOptions & { readonly shards: ShardOptions }): Promise<Images<EncodedRecords>> =>
  openFoundImages(await findInShards(shards, options), options);
