import { availableParallelism } from "node:os";
import type { Decoding, EncodedRecords, ImageSource, Samples } from "../encoded-records.ts";
import { makeRecords, type Records } from "../records.ts";
import type { ImageDecoder } from "./decode-image.ts";
import { eachOf } from "./each-of.ts";
import { findImages, type FoundImages, type ImageFile } from "./find-images.ts";
import { someOf } from "./files-below.ts";
import { type DecoderName, imageDecoder } from "./image-decoder.ts";
import {
  damagedImage,
  imageName,
  imagePlace,
  imageSource,
  isShortOfMemory,
  noSoundImage,
  readImage,
} from "./image-source.ts";
import { decodingThreads, type LazyOptions, openSources } from "./open-sources.ts";
import { findInShards, type ShardOptions } from "./find-in-shards.ts";
import { readManifest } from "./read-manifest.ts";
import { requireMemory } from "./require-memory.ts";

/** How images of any size become samples of one. */
export interface ImageOptions extends Decoding {
  /** Part that is held out where nothing says which images are. */
  readonly testFraction: number;
  /** Leave out images that cannot be decoded, instead of giving up. */
  readonly skipDamaged: boolean;
  /** What decodes them. Default: sharp. */
  readonly decoder?: DecoderName | undefined;
  /** File URL of the module whose dependencies are searched for what decodes: `import.meta.url`. */
  readonly from: string;
}

/** Samples of images, and what people should know of them. */
export interface Images<Of extends Samples = Records> {
  readonly train: Of;
  readonly test: Of;
  readonly classes: number;
  /** Names of the classes, by number. */
  readonly classNames: readonly string[];
  /** A line each. */
  readonly remarks: readonly string[];
}

/** A thousand classes are not told by their names. */
const mostClassesTold = 50;

/** Decode all images of a source, before training. */
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
    "use a smaller size or fewer images, or decode them while training: cacheMegabytes bounds what is kept",
  );
  const pixels = new Uint8Array(new SharedArrayBuffer(source.count * each));
  const isSound: boolean[] = [];
  let why: string | undefined;
  await eachOf(source.count, availableParallelism(), async (index) => {
    isSound[index] = false;
    try {
      const bytes = await readImage(source, index);
      const image = await decoder.decode(bytes, options).catch((cause: Error) => {
        throw damagedImage(imageName(source, index), cause);
      });
      pixels.set(image, index * each);
    } catch (error) {
      if (!skipDamaged || isShortOfMemory((error as Error).cause)) throw error;
      damaged.push(imagePlace(source, index));
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
  return makeRecords(count, {
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
  `${train.count} images to learn from, ${test.count} to judge by, of ${classes.length} classes: ${classes.length <= mostClassesTold ? classes.join(", ") : someOf(classes)}`,
  ...further,
  ...(decoder === "napi-rs"
    ? ["ordinary JPEGs are decoded by @napi-rs/image, other images by sharp; their pixels differ a little"]
    : []),
  ...(incomplete.length === 0
    ? []
    : [`${incomplete.length} samples without an image or a label were left out: ${someOf(incomplete)}`]),
  ...(others.length === 0
    ? []
    : [`${others.length === 1 ? "1 file is no image" : `${others.length} files are no images`}: ${someOf(others)}`]),
];

/** Images that were found, decoded into shared memory; see `loadImageFolder`. */
export const loadFoundImages = async (found: FoundImages, options: ImageOptions): Promise<Images> => {
  const decoder = imageDecoder(options.from, options.decoder ?? "sharp");
  const damaged: string[] = [];
  const recordsIn = (files: FoundImages["train"]): Promise<Records> =>
    recordsOf(imageSource(files, found.manifest), decoder, options, damaged);
  const train = await recordsIn(found.train);
  const test = await recordsIn(found.test);
  const left =
    damaged.length === 0 ? [] : [`${damaged.length} damaged images were left out: ${someOf(damaged.toSorted())}`];
  return {
    train,
    test,
    classes: found.classes.length,
    classNames: found.classes,
    remarks: remarksOn(found, options, { train, test }, left),
  };
};

/**
 * Images to judge by, where others than those are to learn from: decoded into memory, or with `lazy` while batches are
 * taken.
 */
export const loadHeldImages = async (
  files: readonly ImageFile[],
  options: ImageOptions,
  lazy: LazyOptions | undefined,
): Promise<{ readonly records: Samples; readonly remarks: readonly string[] }> => {
  const source = imageSource(files, undefined);
  const leftOut = (damaged: readonly string[]): string[] =>
    damaged.length === 0
      ? []
      : [`${damaged.length} damaged images to judge by are left out: ${someOf(damaged.toSorted())}`];
  if (lazy === undefined) {
    const damaged: string[] = [];
    const decoder = imageDecoder(options.from, options.decoder ?? "sharp");
    return { records: await recordsOf(source, decoder, options, damaged), remarks: leftOut(damaged) };
  }
  const { records, unread, remarks } = await openSources([source], { ...options, ...lazy });
  return { records: records[0]!, remarks: [...leftOut(unread), ...remarks] };
};

/** Images that were found, to be decoded while batches are taken; see `openImageFolder`. */
export const openFoundImages = async (
  found: FoundImages,
  options: ImageOptions & LazyOptions,
): Promise<Images<EncodedRecords>> => {
  const sources = [found.train, found.test].map((files) => imageSource(files, found.manifest));
  const { records, unread, remarks } = await openSources(sources, options);
  const [train, test] = records as [EncodedRecords, EncodedRecords];
  const { cache, decodesAtOnce } = train.images;
  const further = [
    `images are decoded beside training, ${decodesAtOnce} of each rank at once, on ${decodingThreads()} threads of a process (environment variable UV_THREADPOOL_SIZE); the cache has room for ${cache.capacity} of ${train.count + test.count}`,
    ...(unread.length === 0
      ? []
      : [`${unread.length} images cannot be read, and others take their places: ${someOf(unread.toSorted())}`]),
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
 * Images in folders by class (see `findImages`), decoded into shared memory: fields `inputs` u8 [rows, columns,
 * channels] and `labels` i32 [], classes in the order of their names. JPEG, PNG, WebP, AVIF, GIF, TIFF, by package
 * `sharp`, or ordinary JPEGs by `@napi-rs/image` (see `jpegDecoder`).
 *
 * Cost: each image is decoded once, on all cores, before training; `count · rows · columns · channels` bytes stay.
 * @throws DataError when the package is not installed, for folders that hold no classes of images, and for an image
 * that cannot be decoded unless it is to be skipped.
 */
export const loadImageFolder = async ({
  folder,
  ...options
}: ImageOptions & { readonly folder: string }): Promise<Images> =>
  loadFoundImages(findImages(folder, options.testFraction), options);

/**
 * Images that a file names (see `readManifest`), as `loadImageFolder` gives them.
 *
 * @throws DataError for a damaged line, too, with file and line.
 */
export const loadImageManifest = async ({
  file,
  ...options
}: ImageOptions & { readonly file: string }): Promise<Images> =>
  loadFoundImages(readManifest(file, options.testFraction), options);

/**
 * The samples of `loadImageFolder`, but each is decoded when a batch needs it, by the thread that assembles batches
 * (`Prefetcher`, `readEvaluationBatches`). Damaged images show late: where they are to be skipped, the next sound one
 * takes the place of each, so that the number of samples stays.
 *
 * Cost: here each image is read once, for a digest, or only looked at with a `digestFolder` that knows it; then each is
 * read and decoded in every epoch, but for those that the cache keeps. A path, a label and a word of each image stay in
 * memory, and what the cache may hold.
 * @throws DataError as `loadImageFolder`, but for an image that cannot be read instead of one that cannot be decoded;
 * and where there is no room for the cache.
 */
export const openImageFolder = async ({
  folder,
  ...options
}: ImageOptions & LazyOptions & { readonly folder: string }): Promise<Images<EncodedRecords>> =>
  openFoundImages(findImages(folder, options.testFraction), options);

/**
 * Images that a file names (see `readManifest`), as `openImageFolder` gives them.
 *
 * @throws DataError for a damaged line, too, with file and line.
 */
export const openImageManifest = async ({
  file,
  ...options
}: ImageOptions & LazyOptions & { readonly file: string }): Promise<Images<EncodedRecords>> =>
  openFoundImages(readManifest(file, options.testFraction), options);

/**
 * Images in shards of WebDataset (see `findInShards`), as `loadImageFolder` gives them.
 *
 * @throws DataError for damaged shards, and samples without an image or a label, too.
 */
export const loadImageShards = async ({
  shards,
  ...options
}: ImageOptions & { readonly shards: ShardOptions }): Promise<Images> =>
  loadFoundImages(await findInShards(shards, options), options);

/**
 * Images in shards of WebDataset (see `findInShards`), as `openImageFolder` gives them. Of shards on web servers each
 * image that the cache has not is a request.
 *
 * @throws DataError for damaged shards, and samples without an image or a label, too.
 */
export const openImageShards = async ({
  shards,
  ...options
}: ImageOptions & LazyOptions & { readonly shards: ShardOptions }): Promise<Images<EncodedRecords>> =>
  openFoundImages(await findInShards(shards, options), options);
