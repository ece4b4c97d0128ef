import type { ImageSource } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { textAt, textTable } from "../text-table.ts";
import { type ByteSource, isAddress, openSource, pathOf } from "./byte-source.ts";
import type { ImageFile } from "./find-images.ts";
import { type FilePart, quickReader } from "./quick-reader.ts";
import { requireMemory } from "./require-memory.ts";

/** Images that were read already, one after the other in shared memory. */
const inARow = (
  files: readonly ImageFile[],
): { readonly bytes: Uint8Array<SharedArrayBuffer>; readonly begins: Float64Array<SharedArrayBuffer> } => {
  const total = files.reduce((sum, { bytes }) => sum + bytes!.length, 0);
  requireMemory(total, `${files.length} encoded images`, "use fewer files, or make shards of WebDataset of them");
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

/** Images that were found, in shared memory. @param manifest the file that names them, where there is one. */
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
  const places = (of: (file: ImageFile) => number): Float64Array<SharedArrayBuffer> =>
    filled(new Float64Array(new SharedArrayBuffer(8 * files.length)), of);
  const stored = files[0]?.bytes === undefined ? undefined : inARow(files);
  return {
    count: files.length,
    paths: textTable(files.map(({ path }) => path)),
    labels: numbers(({ label }) => label),
    ...(files[0]?.entry !== undefined && {
      parts: {
        names: textTable(files.map(({ entry }) => entry!.name)),
        begins: stored?.begins ?? places(({ entry }) => entry!.begin),
        sizes: places(({ entry }) => entry!.sizeBytes),
      },
    }),
    ...(stored !== undefined && { stored: stored.bytes }),
    ...(manifest !== undefined && { manifest: { file: manifest, lines: numbers(({ line }) => line ?? 0) } }),
  };
};

/** Where an image lies: its path, or that of a tar with the name in it. */
export const imagePlace = ({ paths, parts }: ImageSource, index: number): string =>
  parts === undefined ? textAt(paths, index) : `${pathOf(textAt(paths, index))}/${textAt(parts.names, index)}`;

/** What people know an image by: its place, behind the line that names it. */
export const imageName = (source: ImageSource, index: number): string =>
  `${source.manifest === undefined ? "" : `${source.manifest.file}:${source.manifest.lines[index]}: `}${imagePlace(source, index)}`;

/** Shards on web servers that this thread has opened: each time anew would take a request more. */
const opened = new Map<string, Promise<ByteSource>>();

const readFile = quickReader();

/** A part of a file, here or on a web server. */
const readPart = async (path: string, part: FilePart): Promise<Uint8Array> => {
  if (!isAddress(path)) return readFile(path, part);
  const source = opened.get(path) ?? openSource(path, "see that it is still there", "tar");
  opened.set(path, source);
  source.catch(() => opened.delete(path));
  return (await source).read(part.begin, part.begin + part.sizeBytes);
};

/** The encoded bytes of an image. @throws DataError where they cannot be read, with the system's code. */
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
      `${imageName(source, index)} cannot be read (${code ?? message}); see that it is there, and may be read`,
      { cause },
    );
  }
};

/** An image whose bytes are none. @param name what people know it by. */
export const damagedImage = (name: string, cause: Error): DataError =>
  new DataError(
    `${name} cannot be decoded (${cause.message}); restore it, remove it, or leave such images out with skipDamaged: true`,
    { cause },
  );

/** Whether an image cannot be decoded here and now, for lack of memory: another machine would not leave it out. */
export const isShortOfMemory = (cause: unknown): boolean => cause instanceof DataError;

/** A data set none of whose images can be used. @param why one of them cannot. */
export const noSoundImage = (source: ImageSource, count: number, why?: string): DataError =>
  new DataError(
    `${imagePlace(source, 0)}: none of ${count} images can be decoded${why === undefined ? "" : ` (${why})`}; restore them`,
  );
