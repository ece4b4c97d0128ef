import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { DataError } from "../errors.ts";
import { filesBelow, isFolder } from "./files-below.ts";
import { holdOutByName } from "./hold-out-by-name.ts";
import type { TarEntry } from "./tar-entries.ts";

/** An image of a class. */
export interface ImageFile {
  readonly path: string;
  readonly label: number;
  /** Of the manifest that names it. */
  readonly line?: number;
  /** Which part of the file at `path` it is, where that holds several. */
  readonly entry?: TarEntry;
  /** The image as it is encoded, where it was read already. */
  readonly bytes?: Uint8Array;
}

/** Images of classes, before any is opened; classes are mixed. */
export interface FoundImages {
  /** In the order of their names, which labels count. */
  readonly classes: readonly string[];
  readonly train: readonly ImageFile[];
  readonly test: readonly ImageFile[];
  /** Files that are no images by their names. */
  readonly others: readonly string[];
  /** Samples without an image or a label, that are left out. */
  readonly incomplete?: readonly string[];
  /** The file that names them, where one does. */
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
      `${folder} cannot be read (${(cause as NodeJS.ErrnoException).code}); name a folder with a folder of images for each class`,
      { cause },
    );
  }
};

export const isImage = (path: string): boolean => extensions.has(extname(path).toLowerCase());

const isNumber = (label: string): boolean => /^\d{1,9}$/.test(label);

/** Classes in the order of their names; of numbers, in their order. */
export const classesOf = (labels: ReadonlySet<string>): string[] => {
  const names = [...labels];
  return names.every(isNumber) ? names.sort((one, other) => Number(one) - Number(other)) : names.sort();
};

/**
 * A number in [0, 1) that a path below a folder alone decides.
 *
 * @param use numbers of two uses have nothing in common.
 */
export const placeOf = (use: "part" | "order", folder: string, path: string): number =>
  createHash("sha256")
    .update(`${use}\n${relative(folder, path).replaceAll(sep, "/")}`)
    .digest()
    .readUInt32BE() /
  2 ** 32;

/**
 * Classes in a mixed order, so that the first images, or the last, are some of each; it follows from names alone.
 *
 * @param nameOf an image. Default: its path.
 */
export const mixed = (
  folder: string,
  images: readonly ImageFile[],
  nameOf: (image: ImageFile) => string = ({ path }) => path,
): ImageFile[] =>
  images
    .map((image) => ({ image, name: nameOf(image) }))
    .map((named) => ({ ...named, at: placeOf("order", folder, named.name) }))
    .sort((a, b) => a.at - b.at || (a.name < b.name ? -1 : 1))
    .map(({ image }) => image);

const classesIn = (folder: string): string[] => namesIn(folder).filter((name) => isFolder(join(folder, name)));

/** @throws DataError for a class that has no images. */
const imagesOf = (
  folder: string,
  classes: readonly string[],
): { readonly images: ImageFile[]; readonly others: string[] } => {
  const others: string[] = [];
  const images = classesIn(folder).flatMap((name) => {
    const label = classes.indexOf(name);
    if (label < 0)
      throw new DataError(
        `${join(folder, name)} is of a class that no training image has; the classes are ${classes.join(", ")}: move it away, or give it training images`,
      );
    const files = filesBelow(join(folder, name));
    others.push(...files.filter((path) => !isImage(path)));
    const ofClass = files.filter(isImage);
    if (ofClass.length === 0)
      throw new DataError(
        `${join(folder, name)} holds no images (${[...extensions].join(", ")}); put some in, or remove the folder`,
      );
    return ofClass.map((path) => ({ path, label }));
  });
  return { images, others };
};

/** Whether each image is held out by its path below a folder, see `holdOutByName`. */
export const heldOutOf = (images: readonly ImageFile[], folder: string, fraction: number): boolean[] =>
  holdOutByName(
    images.map(({ path, label }) => ({ label, place: placeOf("part", folder, path) })),
    fraction,
  );

export const heldOutNames: readonly string[] = ["test", "val", "valid", "validation"];

/**
 * Find images in folders by class: in `train/<class>` and `test/<class>` (or `val`, `validation`), else in `<class>`,
 * of which a part is held out by names, in proportion to the classes (see `holdOutByName`).
 *
 * @param testFraction in (0, 1); where there is no folder of held-out images.
 * @throws DataError for a folder without classes, a class without images, or parts without one.
 */
export const findImages = (folder: string, testFraction: number): FoundImages => {
  const top = classesIn(folder);
  const named = (wanted: readonly string[]): string | undefined =>
    wanted.flatMap((name) => top.filter((each) => each.toLowerCase() === name))[0];
  const [trainFolder, heldOut] = [named(["train"]), named(heldOutNames)];
  if (trainFolder !== undefined && heldOut === undefined)
    throw new DataError(
      `${folder} has a folder ${trainFolder}, but none of images to judge by; call it ${heldOutNames.join(", ")}, or name ${join(folder, trainFolder)} as the folder, of which a part is held out`,
    );
  const isCut = trainFolder === undefined;
  const learned = isCut ? folder : join(folder, trainFolder);
  const classes = classesIn(learned);
  if (classes.length < 2)
    throw new DataError(
      `${learned} holds ${classes.length === 0 ? "no folders" : `one folder, ${classes[0]}`}, but each class of images has a folder of its own, two at least; make them, or name another folder`,
    );
  const { images, others } = imagesOf(learned, classes);
  const isHeldOut = isCut ? heldOutOf(images, folder, testFraction) : [];
  const train = images.filter((_, i) => isHeldOut[i] !== true);
  const test = isCut ? images.filter((_, i) => isHeldOut[i]) : imagesOf(join(folder, heldOut!), classes).images;
  if (train.length === 0 || test.length === 0)
    throw new DataError(
      `${folder}: of ${images.length} images ${train.length} are to learn from and ${test.length} to judge by; put more in, or make folders train and test`,
    );
  return { classes, train: mixed(folder, train), test: mixed(folder, test), others };
};
