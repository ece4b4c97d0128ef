import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { DataError } from "../errors.ts";
import { filesBelow, isFolder } from "./files-below.ts";
import { holdOutByName } from "./hold-out-by-name.ts";
import type { TarEntry } from "./tar-entries.ts";

/** Location and class of an image. */
export interface ImageFile {
  readonly path: string;
  readonly label: number;
  /** Line number in the manifest. Absent: no manifest. */
  readonly line?: number;
  /** Part of the file at `path` that contains the image. Absent: the complete file. */
  readonly entry?: TarEntry;
  /** Encoded bytes of the image. Absent: not read yet. */
  readonly bytes?: Uint8Array;
}

/**
 * Locations and classes of the images that a search has found, before any image is read. Images of different classes
 * are mixed.
 */
export interface FoundImages {
  /** Class names, in the order of labels. */
  readonly classes: readonly string[];
  readonly train: readonly ImageFile[];
  readonly test: readonly ImageFile[];
  /** Paths of files that are not used because they have no image extension. */
  readonly others: readonly string[];
  /** Names of samples without an image or a label, which are excluded. Absent: no such samples. */
  readonly incomplete?: readonly string[];
  /** Path of the manifest that lists the images. Absent: no manifest. */
  readonly manifest?: string;
}

const extensions: ReadonlySet<string> = new Set([".avif", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"]);

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder)
      .filter((name) => !name.startsWith("."))
      .sort();
  } catch (cause) {
    throw new DataError(
      `${folder} cannot be read (${(cause as NodeJS.ErrnoException).code}); give a folder with one subfolder of images per class`,
      { cause },
    );
  }
};

export const isImage = (path: string): boolean => extensions.has(extname(path).toLowerCase());

const isNumber = (label: string): boolean => /^\d{1,9}$/.test(label);

/** Sorts class names. If all names are numbers, they are sorted numerically. */
export const classesOf = (labels: ReadonlySet<string>): string[] => {
  const names = [...labels];
  return names.every(isNumber) ? names.sort((one, other) => Number(one) - Number(other)) : names.sort();
};

/**
 * Returns a pseudo-random number in [0, 1) that depends only on a path relative to a folder.
 *
 * @param use Purpose of the number. Numbers for different purposes are independent.
 */
export const nameHash = (use: "part" | "order", folder: string, path: string): number =>
  createHash("sha256")
    .update(`${use}\n${relative(folder, path).replaceAll(sep, "/")}`)
    .digest()
    .readUInt32BE() /
  2 ** 32;

/**
 * Shuffles images so that each range of images contains all classes. The order depends only on the names.
 *
 * @param nameOf Returns the name of an image. Default: its path.
 */
export const mixed = (
  folder: string,
  images: readonly ImageFile[],
  nameOf: (image: ImageFile) => string = ({ path }) => path,
): ImageFile[] =>
  images
    .map((image) => ({ image, name: nameOf(image) }))
    .map((named) => ({ ...named, at: nameHash("order", folder, named.name) }))
    .sort((a, b) => a.at - b.at || (a.name < b.name ? -1 : 1))
    .map(({ image }) => image);

const classesIn = (folder: string): string[] => namesIn(folder).filter((name) => isFolder(join(folder, name)));

/** Returns the images in the folders of the classes. @throws DataError if a class has no images. */
const imagesOf = (
  folder: string,
  classes: readonly string[],
): { readonly images: ImageFile[]; readonly others: string[] } => {
  const others: string[] = [];
  const images = classesIn(folder).flatMap((name) => {
    const label = classes.indexOf(name);
    if (label < 0)
      throw new DataError(
        `${join(folder, name)} is a class without training images; the classes are ${classes.join(", ")}: remove the folder, or add training images`,
      );
    const files = filesBelow(join(folder, name));
    others.push(...files.filter((path) => !isImage(path)));
    const ofClass = files.filter(isImage);
    if (ofClass.length === 0)
      throw new DataError(
        `${join(folder, name)} holds no images (${[...extensions].join(", ")}); add images, or remove the folder`,
      );
    return ofClass.map((path) => ({ path, label }));
  });
  return { images, others };
};

/**
 * Returns whether each image is held out. Depends on the path of the image relative to a folder; see `holdOutByName`.
 */
export const isHeldOutByPath = (images: readonly ImageFile[], folder: string, fraction: number): boolean[] =>
  holdOutByName(
    images.map(({ path, label }) => ({ label, hash: nameHash("part", folder, path) })),
    fraction,
  );

export const heldOutNames: readonly string[] = ["test", "val", "valid", "validation"];

/**
 * Finds images in one folder per class: in `train/<class>` and `test/<class>` (or `val`, `validation`), otherwise in
 * `<class>`. Without a folder of test images, a stratified part is held out by file name (see `holdOutByName`).
 *
 * @param testFraction Fraction to hold out, in (0, 1), if there is no folder of test images.
 * @throws DataError if the folder has no classes, or if a class, the training part or the held-out part has no images.
 * @example
 * ```ts
 * import { mkdirSync, writeFileSync } from "node:fs";
 * for (const name of ["cat", "dog"]) {
 *   mkdirSync(`images/${name}`, { recursive: true });
 *   for (const i of [1, 2, 3, 4]) writeFileSync(`images/${name}/${i}.png`, "");
 * }
 * console.log(findImages("images", 0.25).train.length); // 5
 * ```
 */
export const findImages = (folder: string, testFraction: number): FoundImages => {
  const top = classesIn(folder);
  const named = (wanted: readonly string[]): string | undefined =>
    wanted.flatMap((name) => top.filter((each) => each.toLowerCase() === name))[0];
  const [trainFolder, heldOut] = [named(["train"]), named(heldOutNames)];
  if (trainFolder !== undefined && heldOut === undefined)
    throw new DataError(
      `${folder} has a folder ${trainFolder}, but no folder of test images; add a folder ${heldOutNames.join(", ")}, or give the folder ${join(folder, trainFolder)}, of which a part is then held out`,
    );
  const isCut = trainFolder === undefined;
  const trainingFolder = isCut ? folder : join(folder, trainFolder);
  const classes = classesIn(trainingFolder);
  if (classes.length < 2)
    throw new DataError(
      `${trainingFolder} holds ${classes.length === 0 ? "no folders" : `one folder, ${classes[0]}`}, but at least two folders are required, one per class of images; create them, or give another folder`,
    );
  const { images, others } = imagesOf(trainingFolder, classes);
  const isHeldOut = isCut ? isHeldOutByPath(images, folder, testFraction) : [];
  const train = images.filter((_, i) => isHeldOut[i] !== true);
  const test = isCut ? images.filter((_, i) => isHeldOut[i]) : imagesOf(join(folder, heldOut!), classes).images;
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      `${folder}: of ${images.length} images ${train.length} are for training and ${test.length} for testing; add images, or make folders train and test`,
    );
  return { classes, train: mixed(folder, train), test: mixed(folder, test), others };
};
