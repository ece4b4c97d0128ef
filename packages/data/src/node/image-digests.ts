import { realpathSync } from "node:fs";
import { dirname, relative } from "node:path";
import type { ImageSource } from "../encoded-records.ts";
import { textAt } from "../text-table.ts";
import { isAddress, openSource } from "./byte-source.ts";
import { eachOf } from "./each-of.ts";
import { type FileStamp, fileStamp } from "./file-stamp.ts";
import { readImage } from "./image-source.ts";
import { KnownDigests } from "./known-digests.ts";

/** The innermost folder that files of some sources lie in; above it where their names alone have that beginning. */
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

/** By whatever links people come there. */
const realPath = (folder: string): string => {
  try {
    return realpathSync(folder);
  } catch {
    return folder; // of addresses, or it has vanished
  }
};

/** An address says by a strong ETag that it gives the same bytes; asked anew, in a process that goes on, too. */
const addressStamp = async (address: string): Promise<FileStamp | undefined> => {
  try {
    const { etag, sizeBytes } = await openSource(address, "see that it is still there", "tar");
    return etag === undefined ? undefined : { text: `${sizeBytes} ${etag}`, isSettled: true };
  } catch {
    return undefined;
  }
};

/**
 * Gives for each image of a source what stands for its bytes while these are the same: its path below the folder with
 * the stamp of the file, and which part of the file it is.
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
  /** How many images are read at once. */
  readonly atOnce: number;
  /** Folder in which digests are kept. Default: all images are read. */
  readonly folder: string | undefined;
  /** Gives the bytes of an image. Default: reads them. */
  readonly read?: typeof readImage;
}

/** What is known of the bytes of images. */
export interface ImageDigests {
  /** SHA-256 of each image of a source, one after the other, for each source; zeros where it could not be read. */
  readonly digests: readonly Uint8Array[];
  /** Lines for people. */
  readonly remarks: readonly string[];
}

/**
 * SHA-256 of images' bytes. Files whose size, times and inode are those of an earlier time are not read: that they are
 * there, and may be read, shows in these. Neither are parts of shards that are as they were, here or, by a strong ETag,
 * on a web server. Images that lie in memory are not looked up.
 *
 * @param unread is told of images that cannot be read. Default: the first one is thrown.
 * @throws DataError for an image that cannot be read.
 */
export const imageDigests = async (
  sources: readonly ImageSource[],
  { atOnce, folder, read = readImage }: ImageDigestOptions,
  unread?: (source: number, index: number) => void,
): Promise<ImageDigests> => {
  const filed = folder === undefined ? [] : sources.filter(({ stored }) => stored === undefined);
  const count = filed.reduce((sum, source) => sum + source.count, 0);
  const place = folderOf(filed);
  const known = folder === undefined || count === 0 ? undefined : new KnownDigests(folder, realPath(place), count);
  let numFound = 0;
  const digestsOf = async (source: ImageSource, of: number): Promise<Uint8Array> => {
    const all = new Uint8Array(32 * source.count);
    const stampOf = known && filed.includes(source) ? imageStamps(source, place) : undefined;
    await eachOf(source.count, atOnce, async (index) => {
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
        if (unread === undefined) throw error;
        unread(of, index);
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
    for (const [of, source] of sources.entries()) digests.push(await digestsOf(source, of));
  } finally {
    known?.save(); // of a run that ends by an image that cannot be read, too
  }
  const remarks = known?.remark === undefined ? [] : [known.remark];
  if (numFound > 0)
    remarks.push(
      `${numFound} of ${count} images are as they were when they were read for the digest of the data, and are not read for it again`,
    );
  return { digests, remarks };
};
