import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { isImage } from "./find-images.ts";
import { maxImageBytes } from "./quick-reader.ts";
import { type FoundEntry, type TarBytes, type TarEntry, tarEntries } from "./tar-entries.ts";

/** Files of one WebDataset sample, which have the same key, by extension. */
export interface ShardFiles {
  readonly key: string;
  readonly files: ReadonlyMap<string, TarEntry>;
  /** Byte offset of the first file's first header. */
  readonly header: number;
  /** Whether files with the same key also occur earlier in the shard, with files of another key in between. */
  readonly isSplit: boolean;
}

/** Extensions of the image and label files of a sample. */
export interface ShardNames {
  /** Extension of the image file, after the key. Default: any image extension. */
  readonly image?: string | undefined;
  readonly label: string;
  /** Key of the label in a JSON label file. */
  readonly field: string;
}

/** Splits a file name into key and extension: a key ends at the first dot after the last slash. */
const splitName = (name: string): readonly [key: string, extension: string] => {
  const dot = name.indexOf(".", name.lastIndexOf("/") + 1);
  return dot < 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1).toLowerCase()];
};

/**
 * Groups consecutive files with the same key into samples.
 *
 * @param from Byte offset at which a sample begins. Default: 0.
 * @param pass Called for each file while its bytes are available.
 */
export async function* shardSamples(
  bytes: TarBytes,
  from = 0,
  pass?: (entry: FoundEntry, extension: string) => Promise<void>,
): AsyncGenerator<ShardFiles, void> {
  let sample: (ShardFiles & { readonly files: Map<string, TarEntry> }) | undefined;
  const seen = new Set<string>();
  for await (const entry of tarEntries(bytes, from)) {
    const [key, extension] = splitName(entry.name);
    if (basename(entry.name).startsWith(".")) continue; // metadata of the system that made the archive
    if (sample?.key !== key) {
      if (sample !== undefined) yield sample;
      sample = { key, files: new Map(), header: entry.header, isSplit: seen.has(key) };
      seen.add(key);
    }
    sample.files.set(extension, entry);
    await pass?.(entry, extension);
  }
  if (sample !== undefined) yield sample;
}

/**
 * Suggested fix for samples whose files are not consecutive, for example because the archive lists them in directory
 * order.
 */
export const sortedCure = "make the tar sorted by name, for example with tar --sort=name -cf shard.tar -C folder .";

/**
 * Throws for an incomplete sample whose other files occurred earlier.
 *
 * @param shard Name of the tar file for errors.
 * @throws DataError
 */
export const requireTogether = ({ key, isSplit }: ShardFiles, shard: string): void => {
  if (isSplit)
    throw new DataError(
      `${shard}/${key}: files of the sample are separated by other samples, but must be consecutive; ${sortedCure}`,
    );
};

/** Maximum size of a label file in bytes. Larger files are not treated as labels. */
const maxLabelBytes = 2 ** 16;

export const isLabel = ({ sizeBytes }: TarEntry, extension: string, { label }: ShardNames): boolean =>
  extension === label.toLowerCase() && sizeBytes <= maxLabelBytes;

/**
 * Whether a file has the extension of a sample's image: the given extension, or any image extension if none is given.
 */
export const mayBeImage = ({ name }: TarEntry, extension: string, { image }: ShardNames): boolean =>
  image === undefined ? isImage(name) : extension === image.toLowerCase();

/** Checks the size of an image. @throws DataError if the image is larger than the maximum. */
export const requireImageSize = ({ name, sizeBytes }: TarEntry, shard: string): void => {
  if (sizeBytes > maxImageBytes)
    throw new DataError(
      `${shard}/${name} has ${sizeBytes} bytes, but the maximum for an image is ${maxImageBytes}; remove it, or make it smaller`,
    );
};

/** Returns the image of a sample. @throws DataError if a sample has several images and no extension is given. */
export const imageOf = ({ files, key }: ShardFiles, shard: string, names: ShardNames): TarEntry | undefined => {
  const images = [...files].filter(([extension, entry]) => mayBeImage(entry, extension, names));
  if (images.length > 1)
    throw new DataError(
      `${shard}/${key} has images ${images.map(([extension]) => extension).join(" and ")}; set image to the one to use`,
    );
  const [image] = images;
  if (image !== undefined) requireImageSize(image[1], shard);
  return image?.[1];
};

const isName = (text: string): boolean => /^[^\p{Cc}\ufffd]{1,200}$/u.test(text);

/**
 * Returns the label of a sample. Returns undefined if the label is missing or invalid.
 *
 * @param read Reads a file.
 * @throws DataError if a label file is not valid JSON.
 */
export const labelOf = async (
  { files, key }: ShardFiles,
  shard: string,
  { label, field }: ShardNames,
  read: (entry: TarEntry) => Uint8Array | Promise<Uint8Array>,
): Promise<string | undefined> => {
  const extension = label.toLowerCase();
  const entry = files.get(extension);
  if (entry === undefined || !isLabel(entry, extension, { label, field })) return undefined;
  const text = new TextDecoder().decode(await read(entry)).trim();
  if (!extension.endsWith("json")) return isName(text) ? text : undefined;
  let value: unknown;
  try {
    value = (JSON.parse(text) as Readonly<Record<string, unknown>> | null)?.[field];
  } catch (cause) {
    throw new DataError(`${shard}/${key}.${label} is not valid JSON; correct it`, { cause });
  }
  return typeof value === "number" || typeof value === "string" ? String(value) : undefined;
};
