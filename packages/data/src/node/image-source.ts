import type { ImageSource } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { textAt, textTable } from "../text-table.ts";
import { type ByteSource, isAddress, openSource, pathOf } from "./byte-source.ts";
import type { ImageFile } from "./find-images.ts";
import { type FilePart, quickReader } from "./quick-reader.ts";
import { requireMemory } from "./require-memory.ts";

/** Concatenates the bytes of images that have already been read, in shared memory. */
const concatenated = (
  files: readonly ImageFile[],
): { readonly bytes: Uint8Array<SharedArrayBuffer>; readonly begins: Float64Array<SharedArrayBuffer> } => {
  const total = files.reduce((sum, { bytes }) => sum + bytes!.length, 0);
  requireMemory(total, `${files.length} encoded images`, "use fewer files, or convert them to WebDataset shards");
  const bytes = new Uint8Array(new SharedArrayBuffer(total));
  const begins = new Float64Array(new SharedArrayBuffer(8 * files.length));
  let at = 0;
  for (const [i, file] of files.entries()) {
    begins[i] = at;
    bytes.set(file.bytes!, at);
    at += file.bytes!.length;
  }
  return { bytes, begins };
};

/** Converts a list of images to data in shared memory. @param manifest Path of the manifest. Undefined: no manifest. */
export const imageSource = (files: readonly ImageFile[], manifest: string | undefined): ImageSource => {
  const filled = <Numbers extends Int32Array | Float64Array>(
    array: Numbers,
    of: (file: ImageFile) => number,
  ): Numbers => {
    for (const [i, file] of files.entries()) array[i] = of(file);
    return array;
  };
  const numbers = (of: (file: ImageFile) => number): Int32Array<SharedArrayBuffer> =>
    filled(new Int32Array(new SharedArrayBuffer(4 * files.length)), of);
  const offsets = (of: (file: ImageFile) => number): Float64Array<SharedArrayBuffer> =>
    filled(new Float64Array(new SharedArrayBuffer(8 * files.length)), of);
  const stored = files[0]?.bytes === undefined ? undefined : concatenated(files);
  return {
    count: files.length,
    paths: textTable(files.map(({ path }) => path)),
    labels: numbers(({ label }) => label),
    ...(files[0]?.entry !== undefined && {
      parts: {
        names: textTable(files.map(({ entry }) => entry!.name)),
        begins: stored?.begins ?? offsets(({ entry }) => entry!.begin),
        sizes: offsets(({ entry }) => entry!.sizeBytes),
      },
    }),
    ...(stored !== undefined && { stored: stored.bytes }),
    ...(manifest !== undefined && { manifest: { file: manifest, lines: numbers(({ line }) => line ?? 0) } }),
  };
};

/** Returns the location of an image: its path, or the path of a tar file followed by the name in that file. */
export const imageLocation = ({ paths, parts }: ImageSource, index: number): string =>
  parts === undefined ? textAt(paths, index) : `${pathOf(textAt(paths, index))}/${textAt(parts.names, index)}`;

/** Returns the name of an image for messages: its location, preceded by the manifest line that lists it. */
export const imageName = (source: ImageSource, index: number): string =>
  `${source.manifest === undefined ? "" : `${source.manifest.file}:${source.manifest.lines[index]}: `}${imageLocation(source, index)}`;

/** Open shards on web servers, one cache per thread. Opening a shard costs one request. */
const opened = new Map<string, Promise<ByteSource>>();

const readFile = quickReader();

/** Reads a part of a local file, or of a file on a web server. */
const readPart = async (path: string, part: FilePart): Promise<Uint8Array> => {
  if (!isAddress(path)) return readFile(path, part);
  const source = opened.get(path) ?? openSource(path, "check that the file still exists", "tar");
  opened.set(path, source);
  source.catch(() => opened.delete(path));
  return (await source).read(part.begin, part.begin + part.sizeBytes);
};

/**
 * Reads the encoded bytes of an image.
 *
 * @throws DataError with the system's error code if the bytes cannot be read.
 */
export const readImage = async (source: ImageSource, index: number): Promise<Uint8Array> => {
  try {
    const path = textAt(source.paths, index);
    const { parts, stored } = source;
    if (parts === undefined) return await readFile(path);
    const part = { begin: parts.begins[index]!, sizeBytes: parts.sizes[index]! };
    return stored === undefined ? await readPart(path, part) : stored.slice(part.begin, part.begin + part.sizeBytes);
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new DataError(
      `${imageName(source, index)} cannot be read (${code ?? message}); check that the file exists and is readable`,
      { cause },
    );
  }
};

/** Creates the error for an image that cannot be decoded. @param name Name of the image in messages. */
export const damagedImage = (name: string, cause: Error): DataError =>
  new DataError(
    `${name} cannot be decoded (${cause.message}); restore it, remove it, or skip such images with skipDamaged: true`,
    { cause },
  );

/**
 * Whether an image could not be decoded because memory was insufficient. Such an image is not skipped, because another
 * machine could decode it.
 */
export const isShortOfMemory = (cause: unknown): boolean => cause instanceof DataError;

/**
 * Creates the error for a data set without a usable image. @param why Reason why one of the images cannot be decoded.
 */
export const noSoundImage = (source: ImageSource, count: number, why?: string): DataError =>
  new DataError(
    `${imageLocation(source, 0)}: none of ${count} images can be decoded${why === undefined ? "" : ` (${why})`}; restore them`,
  );
