import { createHash, hash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// A file of digests: a line that says so, records of a key and a digest each, those used last first, and the SHA-256 of
// all that. The key is the beginning of a SHA-256 itself: a hundred bits more than numbers of images have.

const head = Buffer.from("skein digests 1\n");
const keyBytes = 16;
const digestBytes = 32;
const recordBytes = keyBytes + digestBytes;

/** How much is kept. */
export interface DigestBounds {
  /** Of a file, where fewer are in use. */
  readonly records: number;
  /** Bytes of all files in the folder but the one that was written last. */
  readonly folderBytes: number;
}

/** A file of 200 MB, and 1 GiB in all. */
const ordinaryBounds: DigestBounds = { records: 2 ** 22, folderBytes: 2 ** 30 };
/** Of a file, however many are in use: Node reads 2 GiB at once. */
const mostInUse = 2 ** 25;
/** A run that is killed while it reads has lost so much of it. */
const saveEveryMilliseconds = 30_000;
/** Nobody is still writing such a file. */
const leftOverMilliseconds = 24 * 3600 * 1000;

const unfinishedEnding = ".tmp";
/** Names of our files: others in the folder are somebody else's. */
const ours = /^[0-9a-f]{32}(\.[0-9a-f-]{36}\.tmp)?$/;

/** The first bytes of a key; keys that agree in them are told apart by the others. */
const prefixAt = (records: Buffer, at: number): number => records.readUIntBE(at, 6);

/** Records one after the other, to be found by their keys. */
class Records {
  readonly bytes: Buffer;
  private numBytes = 0;
  private readonly places = new Map<number, number>();

  constructor(bytes: Buffer, numBytes: number) {
    this.bytes = bytes;
    for (; this.numBytes < numBytes; this.numBytes += recordBytes)
      this.places.set(prefixAt(bytes, this.numBytes), this.numBytes);
  }

  get filled(): Buffer {
    return this.bytes.subarray(0, this.numBytes);
  }

  /** @param at where in `key` it begins. */
  find(key: Buffer, at = 0): Buffer | undefined {
    const place = this.places.get(prefixAt(key, at));
    if (place === undefined || key.compare(this.bytes, place, place + keyBytes, at, at + keyBytes) !== 0)
      return undefined;
    return this.bytes.subarray(place + keyBytes, place + recordBytes);
  }

  add(key: Buffer, digest: Uint8Array): void {
    if (this.numBytes === this.bytes.length) return;
    this.places.set(prefixAt(key, 0), this.numBytes);
    this.bytes.set(key, this.numBytes);
    this.bytes.set(digest, this.numBytes + keyBytes);
    this.numBytes += recordBytes;
  }

  /** The first ones of others whose keys are not among these. */
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

/** The records of a file; none where there is no file. @returns undefined where it is damaged. */
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

/** Remove files that were used least recently, down to the bound, and what killed processes have left. */
const tidy = (folder: string, written: string, mostBytes: number): void => {
  const names = readdirSync(folder).filter((name) => ours.test(name));
  const files = names.flatMap((name) => {
    const path = join(folder, name);
    const stats = statSync(path, { throwIfNoEntry: false }); // another process tidies, too
    return stats?.isFile() === true && path !== written ? [{ path, size: stats.size, used: stats.mtimeMs }] : [];
  });
  let total = 0;
  for (const { path, size, used } of files.sort((a, b) => b.used - a.used)) {
    const isLeftOver = path.endsWith(unfinishedEnding) && used < Date.now() - leftOverMilliseconds;
    total += size;
    if (isLeftOver || total > mostBytes) rmSync(path, { force: true });
  }
};

/**
 * Digests of what was read before, in a file of a folder, so that it is not read again. Several processes may use one
 * folder at once: files are replaced as a whole, and what another has kept meanwhile stays. No fault of the file or the
 * folder is an error: then nothing is known, or nothing is kept.
 */
export class KnownDigests {
  /** Why digests are not known, or not kept, where they could be: a line for people. */
  remark: string | undefined;
  private readonly folder: string;
  private readonly path: string;
  private readonly before: Records;
  /** Those that were asked for and known, or added, in this order. */
  private readonly inUse: Records;
  private readonly bounds: DigestBounds;
  private hasNew = false;
  private saved = performance.now();

  /**
   * @param folder of all such files; made where it is missing.
   * @param place that the digests belong to. Each has a file of its own.
   * @param count how many digests there may be in use.
   */
  constructor(folder: string, place: string, count: number, bounds: DigestBounds = ordinaryBounds) {
    this.folder = folder;
    this.bounds = bounds;
    // The version is in the name, so that versions do not take turns in overwriting each other's.
    this.path = join(folder, hash("sha256", `${head.toString()}${place}`, "hex").slice(0, 2 * keyBytes));
    const before = this.read() ?? Buffer.alloc(0);
    this.before = new Records(before, before.length);
    this.inUse = new Records(Buffer.alloc(recordBytes * Math.min(count, mostInUse)), 0);
  }

  private read(): Buffer | undefined {
    try {
      const records = readRecords(this.path);
      if (records === undefined) this.remark ??= `${this.path} is damaged, so images are read anew; it is written anew`;
      return records;
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  private fail(error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException;
    this.remark ??= `digests of images cannot be kept in ${this.folder} (${code ?? message}), so the next run reads all images again before it starts; see that the folder may be written, or use another one (SKEIN_CACHE_DIR of skein-train)`;
  }

  /** The digest that was added under a text, in this process or another. */
  find(text: string): Uint8Array | undefined {
    const key = keyOf(text);
    const used = this.inUse.find(key);
    if (used !== undefined) return used;
    const known = this.before.find(key);
    if (known !== undefined) this.inUse.add(key, known);
    return known;
  }

  /** Add a digest that was not found. */
  add(text: string, digest: Uint8Array): void {
    this.inUse.add(keyOf(text), digest);
    this.hasNew = true;
    if (performance.now() - this.saved > saveEveryMilliseconds) this.save();
  }

  /** Keep what was added. */
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
