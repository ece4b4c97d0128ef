import { basename } from "node:path";
import { DataError } from "../errors.ts";
import { isImage } from "./find-images.ts";
import { mostImageBytes } from "./quick-reader.ts";
import { type FoundEntry, type TarBytes, type TarEntry, tarEntries } from "./tar-entries.ts";

/** A sample of WebDataset: the files of one key, by what follows it in their names. */
export interface ShardFiles {
  readonly key: string;
  readonly files: ReadonlyMap<string, TarEntry>;
  /** Where the first of them begins, with its headers. */
  readonly header: number;
  /** Whether other files of the same key came before, with files of another key in between. */
  readonly isPartedFrom: boolean;
}

/** What a sample's files with its image and its label are called. */
export interface ShardNames {
  /** Behind the key. Default: the one that is of an image by its name. */
  readonly image?: string | undefined;
  readonly label: string;
  /** Key of the label, where that file is JSON. */
  readonly field: string;
}

/** Key and extension: a key ends at the first dot of a file's own name. */
const parted = (name: string): readonly [key: string, extension: string] => {
  const dot = name.indexOf(".", name.lastIndexOf("/") + 1);
  return dot < 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot + 1).toLowerCase()];
};

/**
 * Files that follow each other and have one key are a sample.
 *
 * @param from where a sample begins. @param pass is called for each file while its bytes are at hand.
 */
export async function* shardSamples(
  bytes: TarBytes,
  from = 0,
  pass?: (entry: FoundEntry, extension: string) => Promise<void>,
): AsyncGenerator<ShardFiles, void> {
  let sample: (ShardFiles & { readonly files: Map<string, TarEntry> }) | undefined;
  const seen = new Set<string>();
  for await (const entry of tarEntries(bytes, from)) {
    const [key, extension] = parted(entry.name);
    if (basename(entry.name).startsWith(".")) continue; // of the system's that made it
    if (sample?.key !== key) {
      if (sample !== undefined) yield sample;
      sample = { key, files: new Map(), header: entry.header, isPartedFrom: seen.has(key) };
      seen.add(key);
    }
    sample.files.set(extension, entry);
    await pass?.(entry, extension);
  }
  if (sample !== undefined) yield sample;
}

/** What to do where files of a sample do not follow each other, as in the order in which a disk lists them. */
export const sortedCure = "make the tar in the order of names, such as by tar --sort=name -cf shard.tar -C folder .";

/**
 * @param shard name of the tar, for errors.
 * @throws DataError for a sample that lacks its image or label, if other files of the sample came before.
 */
export const requireTogether = ({ key, isPartedFrom }: ShardFiles, shard: string): void => {
  if (isPartedFrom)
    throw new DataError(
      `${shard}/${key}: files of the sample lie apart, with other samples between them, but must follow each other; ${sortedCure}`,
    );
};

/** Labels are short; what is longer is none. */
const mostLabelBytes = 2 ** 16;

export const isLabel = ({ sizeBytes }: TarEntry, extension: string, { label }: ShardNames): boolean =>
  extension === label.toLowerCase() && sizeBytes <= mostLabelBytes;

/** Whether a file may be a sample's image. */
export const mayBeImage = ({ name }: TarEntry, extension: string, { image }: ShardNames): boolean =>
  image === undefined ? isImage(name) : extension === image.toLowerCase();

/** @throws DataError for an image of more bytes than are read of one. */
export const requireImageSize = ({ name, sizeBytes }: TarEntry, shard: string): void => {
  if (sizeBytes > mostImageBytes)
    throw new DataError(
      `${shard}/${name} has ${sizeBytes} bytes, but at most ${mostImageBytes} are read of an image; leave it out, or make it smaller`,
    );
};

/** @throws DataError for a sample with images of several kinds, of which none was chosen. */
export const imageOf = ({ files, key }: ShardFiles, shard: string, names: ShardNames): TarEntry | undefined => {
  const images = [...files].filter(([extension, entry]) => mayBeImage(entry, extension, names));
  if (images.length > 1)
    throw new DataError(
      `${shard}/${key} has images ${images.map(([extension]) => extension).join(" and ")}; set image to the one to learn from`,
    );
  const [image] = images;
  if (image !== undefined) requireImageSize(image[1], shard);
  return image?.[1];
};

const isName = (text: string): boolean => /^[^\p{Cc}\ufffd]{1,200}$/u.test(text);

/** What a sample is labelled with. @param read what a file holds. @throws DataError for what should be JSON. */
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
    throw new DataError(`${shard}/${key}.${label} is no JSON; correct it`, { cause });
  }
  return typeof value === "number" || typeof value === "string" ? String(value) : undefined;
};
