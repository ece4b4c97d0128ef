import { type FileContent, foreignContent, headBytes } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { openFile } from "./file-pieces.ts";

/** A local file, or a file on a web server, with random access. */
export interface ByteSource {
  /** Name in errors: a path, or a URL without its query, which may contain a secret. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Strong ETag sent by a web server. Absent: the server sends no strong ETag, or the file is local. */
  readonly etag?: string | undefined;
  /** Reads the bytes from `begin` to `end` (exclusive) into new memory. */
  read(begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  close(): void;
}

/**
 * Whether a location is an HTTP URL. If false, it is a path.
 *
 * @example
 * ```ts
 * console.log(isAddress("https://example.org/shard-0.tar"), isAddress("shard-0.tar")); // true false
 * ```
 */
export const isAddress = (location: string): boolean => /^https?:\/\//i.test(location);

/**
 * Returns a URL without its query and fragment.
 *
 * @throws DataError if the URL is invalid.
 */
const nameOf = (address: string): string => {
  if (!URL.canParse(address))
    throw new DataError(`${address.split(/[?#]/, 1)[0]} is not a valid address; write it as https://host/path`);
  const { origin, pathname } = new URL(address);
  return origin + pathname;
};

/** Returns a URL without its query and fragment. Returns a file path unchanged. */
export const pathOf = (location: string): string => (isAddress(location) ? nameOf(location) : location);

/** Pauses in milliseconds before each retry of a request. */
const pauses = [200, 1000, 3000];

/** Timeout of one request in milliseconds. */
const timeoutMilliseconds = 60_000;

const reasonOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
};

/** Whether a request with this HTTP status may succeed on a retry. */
const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500;

interface Part {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly status: number;
  readonly headers: Headers;
}

/** Requests a byte range of a file by HTTP. Retries after a network failure or a temporary server error. */
const requestPart = async (
  address: string,
  range: string,
  version: string | undefined,
  cure: string,
): Promise<Part> => {
  for (let turn = 0; ; turn++) {
    let fault: string;
    try {
      const response = await fetch(address, {
        headers: { range, ...(version !== undefined && { "if-range": version }) },
        signal: AbortSignal.timeout(timeoutMilliseconds),
      });
      const { status, headers } = response;
      if (status === 206) return { status, headers, bytes: new Uint8Array(await response.arrayBuffer()) };
      // Discards the body, because the server may have sent the complete file instead of the requested range.
      await response.body?.cancel();
      if (!isTransient(status)) return { status, headers, bytes: new Uint8Array(0) };
      fault = `the server answers ${status}`;
    } catch (error) {
      fault = reasonOf(error);
    }
    const pause = pauses[turn];
    if (pause === undefined)
      throw new DataError(`${nameOf(address)} cannot be read (${fault}, ${turn + 1} times); ${cure}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
};

const openAddress = async (address: string, cure: string, holds: FileContent): Promise<ByteSource> => {
  const name = nameOf(address);
  const first = await requestPart(address, `bytes=0-${headBytes - 1}`, undefined, cure);
  const total = /\/(\d+)$/.exec(first.headers.get("content-range") ?? "")?.[1];
  // An empty file has no first byte, so that the range request fails.
  if (first.status === 416 && total === "0")
    return { name, sizeBytes: 0, read: async () => new Uint8Array(0), close: () => undefined };
  if (first.status === 200)
    throw new DataError(
      `${name}: the server does not support HTTP range requests; download the file and give its path`,
    );
  if (first.status !== 206 || total === undefined)
    throw new DataError(`${name} cannot be read (the server answers ${first.status}); ${cure}`);
  const foreign = foreignContent(first.bytes, holds);
  if (foreign !== undefined) throw new DataError(`${name} ${foreign}`);
  const sizeBytes = Number(total);
  const tag = first.headers.get("etag");
  // a weak ETag does not guarantee identical bytes
  const etag = tag?.startsWith('"') === true ? tag : undefined;
  const version = etag ?? first.headers.get("last-modified") ?? undefined;
  return {
    name,
    sizeBytes,
    etag,
    async read(begin, end) {
      if (begin === end) return new Uint8Array(0);
      const { bytes, status } = await requestPart(address, `bytes=${begin}-${end - 1}`, version, cure);
      if (status === 200) throw new DataError(`${name} changed while it was read; start again`);
      if (bytes.length !== end - begin)
        throw new DataError(
          `${name}: the server returned ${bytes.length} of ${end - begin} bytes at offset ${begin}; download the file and give its path`,
        );
      return bytes;
    },
    close: () => undefined,
  };
};

const openLocal = (path: string, cure: string, holds: FileContent): ByteSource => {
  const { name, sizeBytes, read, close } = openFile(path, cure, holds);
  return {
    name,
    sizeBytes,
    async read(begin, end) {
      const bytes = new Uint8Array(end - begin);
      read(begin, bytes);
      return bytes;
    },
    close,
  };
};

/**
 * Opens a file by its path or URL. A web server must support HTTP range requests. Requests that fail temporarily are
 * retried three times. If the file changes while it is read, a read fails.
 *
 * @param holds Expected content; a file that begins like another format is rejected.
 * @throws DataError that ends with `cure` if the file cannot be read.
 */
export const openSource = async (location: string, cure: string, holds: FileContent): Promise<ByteSource> =>
  isAddress(location) ? openAddress(location, cure, holds) : openLocal(location, cure, holds);
