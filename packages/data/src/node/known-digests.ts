import { createHash, hash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// A digest file begins with the line `head`. Records follow, most recently used first, each with a key and a digest.
// The file ends with the SHA-256 of all preceding bytes. A key is the first 128 bits of a SHA-256, so that collisions
// are practically impossible.

const head = Buffer.from("skein digests 1\n");
const keyBytes = 16;
const digestBytes = 32;
const recordBytes = keyBytes + digestBytes;

/** Size limits of stored digests. */
export interface DigestBounds {
  /** Maximum number of records per file, unless more records are in use. */
  readonly records: number;
  /** Maximum total size in bytes of the files in the folder, except the last written file. */
  readonly folderBytes: number;
}

/** Default limits: at most 200 MB per file, and 1 GiB in total. */
const ordinaryBounds: DigestBounds = { records: 2 ** 22, folderBytes: 2 ** 30 };
/** Maximum number of records in use. Also limits the records per file, because Node reads at most 2 GiB at once. */
const maxInUse = 2 ** 25;
/** Interval in milliseconds at which digests are saved. A killed run loses at most the work of one interval. */
const saveEveryMilliseconds = 30_000;
/** Age in milliseconds after which an unfinished file counts as abandoned. */
const leftOverMilliseconds = 24 * 3600 * 1000;

const unfinishedEnding = ".tmp";
/** Matches names of digest files. Other files in the folder are never changed. */
const ours = /^[0-9a-f]{32}(\.[0-9a-f-]{36}\.tmp)?$/;

/**
 * Returns the first 6 bytes of a key as an integer. Keys with equal prefixes are distinguished by their remaining
 * bytes.
 */
const prefixAt = (records: Buffer, at: number): number => records.readUIntBE(at, 6);

/** In-memory table of records, each a key and its digest, with an index by key. */
class Records {
  readonly bytes: Buffer;
  private numBytes = 0;
  private readonly offsets = new Map<number, number>();

  constructor(bytes: Buffer, numBytes: number) {
    this.bytes = bytes;
    for (; this.numBytes < numBytes; this.numBytes += recordBytes)
      this.offsets.set(prefixAt(bytes, this.numBytes), this.numBytes);
  }

  get filled(): Buffer {
    return this.bytes.subarray(0, this.numBytes);
  }

  /**
   * Returns the digest for the key that begins at byte offset `at` of the buffer `key`. Undefined: no digest is known.
   */
  find(key: Buffer, at = 0): Buffer | undefined {
    const offset = this.offsets.get(prefixAt(key, at));
    if (offset === undefined || key.compare(this.bytes, offset, offset + keyBytes, at, at + keyBytes) !== 0)
      return undefined;
    return this.bytes.subarray(offset + keyBytes, offset + recordBytes);
  }

  add(key: Buffer, digest: Uint8Array): void {
    if (this.numBytes === this.bytes.length) return;
    this.offsets.set(prefixAt(key, 0), this.numBytes);
    this.bytes.set(key, this.numBytes);
    this.bytes.set(digest, this.numBytes + keyBytes);
    this.numBytes += recordBytes;
  }

  /**
   * Returns the records of `others` whose keys are not in this table, but at most the first `most` of these records.
   */
  without(others: Buffer, most: number): Buffer {
    const left = Buffer.alloc(Math.min(others.length, most * recordBytes));
    let end = 0;
    for (let at = 0; at < others.length && end < left.length; at += recordBytes)
      if (this.find(others, at) === undefined) end += others.copy(left, end, at, at + recordBytes);
    return left.subarray(0, end);
  }
}

const sumOf = (...parts: readonly Uint8Array[]): Buffer => {
  const sum = createHash("sha256");
  for (const part of parts) sum.update(part);
  return sum.digest();
};

/** Reads the records of a file. Returns an empty buffer if the file does not exist, and undefined if it is damaged. */
const readRecords = (path: string): Buffer | undefined => {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
  const end = bytes.length - digestBytes;
  const records = bytes.subarray(head.length, end);
  const isWhole =
    end >= head.length &&
    records.length % recordBytes === 0 &&
    bytes.subarray(0, head.length).equals(head) &&
    bytes.subarray(end).equals(sumOf(head, records));
  return isWhole ? records : undefined;
};

/**
 * Removes the least recently used files until the folder is within its size limit, and files abandoned by killed
 * processes.
 */
const tidy = (folder: string, written: string, maxBytes: number): void => {
  const names = readdirSync(folder).filter((name) => ours.test(name));
  const files = names.flatMap((name) => {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false }); // another process may remove files at the same time
    return stats?.isFile() === true && path !== written ? [{ path, size: stats.size, used: stats.mtimeMs }] : [];
  });
  let total = 0;
  for (const { path, size, used } of files.sort((a, b) => b.used - a.used)) {
    const isLeftOver = path.endsWith(unfinishedEnding) && used < Date.now() - leftOverMilliseconds;
    total += size;
    if (isLeftOver || total > maxBytes) rmSync(path, { force: true });
  }
};

/**
 * Digests of files that were read before, stored in a file of a folder, so that these files are not read again. Several
 * processes may use one folder at the same time: files are replaced atomically, and records stored by another process
 * in the meantime are kept. After an error of the file or folder, no digest is known or stored, and `remark` contains
 * the reason.
 */
export class KnownDigests {
  /** Reason why digests are not known or not stored, as one line for the user. Undefined: no error. */
  remark: string | undefined;
  private readonly folder: string;
  private readonly path: string;
  private readonly before: Records;
  /** Digests that were found or added, in the order of the calls. */
  private readonly inUse: Records;
  private readonly bounds: DigestBounds;
  private hasNew = false;
  private saved = performance.now();

  /**
   * Opens the digest file of a location, and reads its records.
   *
   * @param folder Folder of all digest files; created if missing.
   * @param location Location of the images. Each location has its own digest file.
   * @param count Maximum number of digests in use.
   */
  constructor(folder: string, location: string, count: number, bounds: DigestBounds = ordinaryBounds) {
    this.folder = folder;
    this.bounds = bounds;
    // The file name contains the format version, so that versions do not overwrite each other's files.
    this.path = join(folder, hash("sha256", `${head.toString()}${location}`, "hex").slice(0, 2 * keyBytes));
    const before = this.read() ?? Buffer.alloc(0);
    this.before = new Records(before, before.length);
    this.inUse = new Records(Buffer.alloc(recordBytes * Math.min(count, maxInUse)), 0);
  }

  private read(): Buffer | undefined {
    try {
      const records = readRecords(this.path);
      if (records === undefined)
        this.remark ??= `${this.path} is damaged, so images are read again and the file is rewritten`;
      return records;
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  private fail(error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException;
    this.remark ??= `digests of images cannot be kept in ${this.folder} (${code ?? message}), so the next run reads all images again before it starts; make the folder writable, or use another folder (SKEIN_CACHE_DIR of skein-train)`;
  }

  /** Returns the digest that this process or another process has added for a text. Undefined: no digest is known. */
  find(text: string): Uint8Array | undefined {
    const key = keyOf(text);
    const used = this.inUse.find(key);
    if (used !== undefined) return used;
    const known = this.before.find(key);
    if (known !== undefined) this.inUse.add(key, known);
    return known;
  }

  /** Adds a digest that `find` did not return. */
  add(text: string, digest: Uint8Array): void {
    this.inUse.add(keyOf(text), digest);
    this.hasNew = true;
    if (performance.now() - this.saved > saveEveryMilliseconds) this.save();
  }

  /** Writes the added digests to the file. */
  save(): void {
    this.saved = performance.now();
    try {
      if (this.hasNew) this.write();
      else if (this.before.bytes.length > 0) utimesSync(this.path, new Date(), new Date());
    } catch (error) {
      if (this.hasNew) this.fail(error);
    }
    this.hasNew = false;
  }

  private write(): void {
    mkdirSync(this.folder, { recursive: true });
    const { filled } = this.inUse;
    const room = Math.max(0, this.bounds.records - filled.length / recordBytes);
    const others = this.inUse.without(readRecords(this.path) ?? Buffer.alloc(0), room);
    const records = Buffer.concat([filled, others]);
    const unfinished = `${this.path}.${randomUUID()}${unfinishedEnding}`;
    try {
      writeFileSync(unfinished, Buffer.concat([head, records, sumOf(head, records)]));
      renameSync(unfinished, this.path);
    } catch (error) {
      rmSync(unfinished, { force: true });
      throw error;
    }
    tidy(this.folder, this.path, this.bounds.folderBytes);
  }
}

const keyOf = (text: string): Buffer => hash("sha256", text, "buffer").subarray(0, keyBytes);
