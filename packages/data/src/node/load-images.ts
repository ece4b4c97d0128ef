import { availableParallelism } from "node:os";
import { DataError } from "../errors.ts";
import { makeRecords, type Records } from "../records.ts";
import { readerPackages } from "./data-packages.ts";
import { findImages, type FoundImages, type ImageFile } from "./find-images.ts";
import { someOf } from "./files-below.ts";
import { requirePackage } from "./optional-package.ts";
import { readManifest } from "./read-manifest.ts";
import { requireMemory } from "./require-memory.ts";

/** How images of any size become samples of one. */
export interface ImageOptions {
  /** Rows and columns. */
  readonly size: readonly [number, number];
  /** Red, green and blue, or grey. */
  readonly channels: 1 | 3;
  /** Cut off what is too much, leave it black around, or stretch. */
  readonly fit: "cover" | "contain" | "stretch";
  /** Part that is held out where nothing says which images are. */
  readonly testFraction: number;
  /** Leave out images that cannot be decoded, instead of giving up. */
  readonly skipDamaged: boolean;
  /** File URL of the module whose dependencies are searched for package `sharp`: `import.meta.url`. */
  readonly from: string;
}

/** Samples of images, and what people should know of them. */
export interface Images {
  readonly train: Records;
  readonly test: Records;
  readonly classes: number;
  /** A line each. */
  readonly remarks: readonly string[];
}

/** What we use of the package. */
interface Pipeline {
  autoOrient(): Pipeline;
  flatten(options: { readonly background: string }): Pipeline;
  resize(width: number, height: number, options: { readonly fit: string; readonly background: string }): Pipeline;
  toColourspace(name: string): Pipeline;
  raw(options: { readonly depth: "uchar" }): Pipeline;
  toBuffer(): Promise<Uint8Array>;
}
type Sharp = (path: string, options: { readonly failOn: "error" }) => Pipeline;

/** Decode one image. EXIF turns it, what is transparent becomes black, of an animation the first picture counts. */
const decode = (
  sharp: Sharp,
  path: string,
  { size: [rows, columns], channels, fit }: ImageOptions,
): Promise<Uint8Array> =>
  sharp(path, { failOn: "error" })
    .autoOrient()
    .flatten({ background: "black" })
    .resize(columns, rows, { fit: fit === "stretch" ? "fill" : fit, background: "black" })
    .toColourspace(channels === 1 ? "b-w" : "srgb")
    .raw({ depth: "uchar" })
    .toBuffer();

/**
 * Do something with each item, so many at a time. After a failure no other is begun; of several the first in the list
 * is thrown, however long each took.
 */
const eachOf = async <T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> => {
  const failures = new Map<number, unknown>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length && failures.size === 0) {
      const index = next++;
      await work(items[index]!, index).catch((error: unknown) => failures.set(index, error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failures.size > 0) throw failures.get(Math.min(...failures.keys()));
};

/** A thousand classes are not told by their names. */
const mostClassesTold = 50;

const recordsOf = async (
  files: readonly ImageFile[],
  options: ImageOptions,
  sharp: Sharp,
  damaged: string[],
): Promise<Records> => {
  const { size, channels, skipDamaged } = options;
  const shape = [...size, channels];
  const each = size[0] * size[1] * channels;
  requireMemory(
    files.length * each,
    `${files.length} images of ${shape.join("×")}, decoded,`,
    "use a smaller size or fewer images",
  );
  const pixels = new Uint8Array(new SharedArrayBuffer(files.length * each));
  const isSound: boolean[] = [];
  await eachOf(files, availableParallelism(), async ({ path, place }, index) => {
    isSound[index] = false;
    let bytes: Uint8Array;
    try {
      bytes = await decode(sharp, path, options);
    } catch (cause) {
      const why = (cause as Error).message.split("\n")[0]!;
      if (!skipDamaged)
        throw new DataError(
          `${place === undefined ? "" : `${place}: `}${path} cannot be decoded (${why}); restore it, remove it, or leave such images out with skipDamaged: true`,
          { cause },
        );
      damaged.push(path);
      return;
    }
    pixels.set(bytes, index * each);
    isSound[index] = true;
  });
  let count = 0;
  const labels = new Int32Array(new SharedArrayBuffer(4 * files.length));
  for (const [index, { label }] of files.entries()) {
    if (!isSound[index]!) continue;
    if (count !== index) pixels.copyWithin(count * each, index * each, (index + 1) * each);
    labels[count++] = label;
  }
  if (count === 0)
    throw new DataError(`${files[0]!.path}: none of ${files.length} images can be decoded; restore them`);
  return makeRecords(count, {
    inputs: { bytes: pixels, offsetBytes: 0, strideBytes: each, dtype: "u8", shape },
    labels: { bytes: new Uint8Array(labels.buffer), offsetBytes: 0, strideBytes: 4, dtype: "i32", shape: [] },
  });
};

/** Images that were found, decoded by package `sharp` into shared memory; see `loadImageFolder`. */
const loadImages = async (found: FoundImages, options: ImageOptions): Promise<Images> => {
  const sharp = requirePackage(readerPackages.images, options.from) as Sharp;
  const damaged: string[] = [];
  const train = await recordsOf(found.train, options, sharp, damaged);
  const test = await recordsOf(found.test, options, sharp, damaged);
  return {
    train,
    test,
    classes: found.classes.length,
    remarks: [
      `${train.count} images to learn from, ${test.count} to judge by, of ${found.classes.length} classes: ${found.classes.length <= mostClassesTold ? found.classes.join(", ") : someOf(found.classes)}`,
      ...(damaged.length === 0
        ? []
        : [`${damaged.length} damaged images were left out: ${someOf(damaged.toSorted())}`]),
      ...(found.others.length === 0 ? [] : [`${found.others.length} files are no images: ${someOf(found.others)}`]),
    ],
  };
};

/**
 * Images in folders by class (see `findImages`), decoded by package `sharp` into shared memory: fields `inputs` u8
 * [rows, columns, channels] and `labels` i32 [], classes in the order of their names. JPEG, PNG, WebP, AVIF, GIF, TIFF.
 *
 * Cost: each image is decoded once, on all cores, before training; `count · rows · columns · channels` bytes stay.
 * @throws DataError when the package is not installed, for folders that hold no classes of images, and for an image
 * that cannot be decoded unless it is to be skipped.
 */
export const loadImageFolder = async ({
  folder,
  ...options
}: ImageOptions & { readonly folder: string }): Promise<Images> =>
  loadImages(findImages(folder, options.testFraction), options);

/**
 * Images that a file names (see `readManifest`), as `loadImageFolder` gives them.
 *
 * @throws DataError for a damaged line, too, with file and line.
 */
export const loadImageManifest = async ({
  file,
  ...options
}: ImageOptions & { readonly file: string }): Promise<Images> =>
  loadImages(readManifest(file, options.testFraction), options);
