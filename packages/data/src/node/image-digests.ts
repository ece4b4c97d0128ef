import { realpathSync } from "node:fs";
import { dirname, relative } from "node:path";
import type { ImageSource } from "../encoded-records.ts";
import { textAt } from "../text-table.ts";
import { isAddress, openSource } from "./byte-source.ts";
import { forEachConcurrently } from "./for-each-concurrently.ts";
import { type FileStamp, fileStamp } from "./file-stamp.ts";
import { readImage } from "./image-source.ts";
import { KnownDigests } from "./known-digests.ts";

/** Returns a folder that contains all files of the image sources: their innermost common folder, or a parent folder. */
const folderOf = (sources: readonly ImageSource[]): string => {
  let folder: string | undefined;
  for (const { count, paths } of sources)
    for (let i = 0; i < count; i++) {
      const path = textAt(paths, i);
      folder ??= dirname(path);
      while (!path.startsWith(folder) && folder !== dirname(folder)) folder = dirname(folder);
    }
  return folder ?? ".";
};

/** Resolves links, so that the result does not depend on the path used to reach a folder. */
const realPath = (folder: string): string => {
  try {
    return realpathSync(folder);
  } catch {
    return folder; // the folder is part of a URL, or does not exist
  }
};

/**
 * Returns the stamp of a URL: the file size and the strong ETag, which identifies the bytes. Returns undefined without
 * a strong ETag. Each call sends a request to the server.
 */
const addressStamp = async (address: string): Promise<FileStamp | undefined> => {
  try {
    const { etag, sizeBytes } = await openSource(address, "see that it is still there", "tar");
    return etag === undefined ? undefined : { text: `${sizeBytes} ${etag}`, isSettled: true };
  } catch {
    return undefined;
  }
};

/**
 * Returns a function that identifies an image's bytes by the path relative to the folder, the file's stamp, and the
 * byte range of the image in the file.
 */
const imageStamps = (
  { paths, parts }: ImageSource,
  folder: string,
): ((index: number) => Promise<FileStamp | undefined>) => {
  const ofFile = async (path: string): Promise<FileStamp | undefined> => {
    const [name, stamp] = isAddress(path)
      ? [path, await addressStamp(path)]
      : [relative(folder, path), await fileStamp(path)];
    return stamp && { ...stamp, text: `${name}\0${stamp.text}` };
  };
  if (parts === undefined) return (index) => ofFile(textAt(paths, index));
  const shards = new Map<string, Promise<FileStamp | undefined>>();
  return async (index) => {
    const path = textAt(paths, index);
    const ofShard = shards.get(path) ?? ofFile(path);
    shards.set(path, ofShard);
    const stamp = await ofShard;
    return stamp && { ...stamp, text: `${stamp.text}\0${parts.begins[index]} ${parts.sizes[index]}` };
  };
};

export interface ImageDigestOptions {
  /** Maximum number of images read concurrently. */
  readonly concurrency: number;
  /** Folder in which digests are stored. Undefined: all images are read. */
  readonly folder: string | undefined;
  /** Reads the encoded bytes of an image. Default: `readImage`. */
  readonly read?: typeof readImage;
}

/** Digests of the images of some sources. */
export interface ImageDigests {
  /** SHA-256 digests of the images of each source, concatenated. Zeros for an unreadable image. */
  readonly digests: readonly Uint8Array[];
  /** Remarks for the user, one line each. */
  readonly remarks: readonly string[];
}

/**
 * Computes the SHA-256 digests of images. A file with the same size, timestamps and inode as in an earlier run is not
 * read again. Its metadata also shows that the file exists and is readable. Images in unchanged shards are not read
 * again either. A local shard is identified by its metadata, a shard on a web server by its strong ETag. Images in
 * memory are always hashed.
 *
 * @param onUnreadable Called for each unreadable image. Absent: the first unreadable image throws.
 * @throws DataError if an image is unreadable.
 */
export const imageDigests = async (
  sources: readonly ImageSource[],
  { concurrency, folder, read = readImage }: ImageDigestOptions,
  onUnreadable?: (source: number, index: number) => void,
): Promise<ImageDigests> => {
  const fileSources = folder === undefined ? [] : sources.filter(({ stored }) => stored === undefined);
  const count = fileSources.reduce((sum, source) => sum + source.count, 0);
  const commonFolder = folderOf(fileSources);
  const known =
    folder === undefined || count === 0 ? undefined : new KnownDigests(folder, realPath(commonFolder), count);
  let numFound = 0;
  const digestsOf = async (source: ImageSource, sourceIndex: number): Promise<Uint8Array> => {
    const all = new Uint8Array(32 * source.count);
    const stampOf = known && fileSources.includes(source) ? imageStamps(source, commonFolder) : undefined;
    await forEachConcurrently(source.count, concurrency, async (index) => {
      const stamp = await stampOf?.(index);
      const before = stamp && known?.find(stamp.text);
      if (before !== undefined) {
        numFound++;
        all.set(before, 32 * index);
        return;
      }
      let bytes: Uint8Array;
      try {
        bytes = await read(source, index);
      } catch (error) {
        if (onUnreadable === undefined) throw error;
        onUnreadable(sourceIndex, index);
        return;
      }
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
      all.set(digest, 32 * index);
      if (stamp?.isSettled === true) known!.add(stamp.text, digest);
    });
    return all;
  };
  const digests: Uint8Array[] = [];
  try {
    for (const [i, source] of sources.entries()) digests.push(await digestsOf(source, i));
  } finally {
    known?.save(); // also if an image cannot be read
  }
  const remarks = known?.remark === undefined ? [] : [known.remark];
  if (numFound > 0)
    remarks.push(
      `${numFound} of ${count} images are unchanged since their digests were computed, and are not read again for the digest of the data`,
    );
  return { digests, remarks };
};
