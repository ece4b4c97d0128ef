import { readFile } from "node:fs/promises";
import type { ImageSource } from "../encoded-records.ts";
import { DataError } from "../errors.ts";
import { textAt, textTable } from "../text-table.ts";
import type { ImageFile } from "./find-images.ts";

/** Images that were found, in shared memory. @param manifest the file that names them, where there is one. */
export const imageSource = (files: readonly ImageFile[], manifest: string | undefined): ImageSource => {
  const numbers = (of: (file: ImageFile) => number): Int32Array<SharedArrayBuffer> => {
    const array = new Int32Array(new SharedArrayBuffer(4 * files.length));
    for (const [i, file] of files.entries()) array[i] = of(file);
    return array;
  };
  return {
    count: files.length,
    paths: textTable(files.map(({ path }) => path)),
    labels: numbers(({ label }) => label),
    ...(manifest !== undefined && { manifest: { file: manifest, lines: numbers(({ line }) => line ?? 0) } }),
  };
};

/** What people know an image by: its path, behind the line that names it. */
export const imageName = ({ paths, manifest }: ImageSource, index: number): string =>
  `${manifest === undefined ? "" : `${manifest.file}:${manifest.lines[index]}: `}${textAt(paths, index)}`;

/** The encoded bytes of an image. @throws DataError where they cannot be read, with the system's code. */
export const readImage = async (source: ImageSource, index: number): Promise<Uint8Array> => {
  try {
    return await readFile(textAt(source.paths, index));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new DataError(
      `${imageName(source, index)} cannot be read (${code ?? message}); see that it is there, and may be read`,
      { cause },
    );
  }
};

/** An image whose bytes are none. */
export const damagedImage = (source: ImageSource, index: number, cause: Error): DataError =>
  new DataError(
    `${imageName(source, index)} cannot be decoded (${cause.message}); restore it, remove it, or leave such images out with skipDamaged: true`,
    { cause },
  );

/** A data set none of whose images can be used. */
export const noSoundImage = (source: ImageSource, count: number): DataError =>
  new DataError(`${textAt(source.paths, 0)}: none of ${count} images can be decoded; restore them`);
