import { type FileContent, foreignContent, headBytes } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import { openFile } from "./file-pieces.ts";

/** A file, here or on a web server, of which any part can be read. */
export interface ByteSource {
  /** As errors call it: of an address without its query, which may hold a key. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Of a web server that gives one which stands for the bytes. */
  readonly etag?: string | undefined;
  /** Bytes `begin` to `end` − 1, in memory of their own. */
  read(begin: number, end: number): Promise<Uint8Array<ArrayBuffer>>;
  close(): void;
}

/** Whether a place is an address of a web server, and no path. */
export const isAddress = (place: string): boolean => /^https?:\/\//i.test(place);

/** What an address calls its file, without its query. @throws DataError for one that is none. */
const nameOf = (address: string): string => {
  if (!URL.canParse(address))
    throw new DataError(`${address.split(/[?#]/, 1)[0]} is no address; write it as https://host/path`);
  const { origin, pathname } = new URL(address);
  return origin + pathname;
};

/** The path of a place, without the query of an address. */
export const pathOf = (place: string): string => (isAddress(place) ? nameOf(place) : place);

/** Waits before each new try of a request, in milliseconds. */
const pauses = [200, 1000, 3000];

/** Of one request: a server that sends nothing more is given up. */
const patienceMilliseconds = 60_000;

const reasonOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error ? cause.message : message;
};

/** Answers that another try may change. */
const isPassing = (status: number): boolean => status === 408 || status === 429 || status >= 500;

interface Part {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly status: number;
  readonly headers: Headers;
}

/** A part of a file by HTTP; tried anew where the way there fails, or the server for the moment. */
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
        signal: AbortSignal.timeout(patienceMilliseconds),
      });
      const { status, headers } = response;
      if (status === 206) return { status, headers, bytes: new Uint8Array(await response.arrayBuffer()) };
      // Nobody waits for the end of a whole file where a part was asked for.
      await response.body?.cancel();
      if (!isPassing(status)) return { status, headers, bytes: new Uint8Array(0) };
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
  // An empty file has no first byte.
  if (first.status === 416 && total === "0")
    return { name, sizeBytes: 0, read: async () => new Uint8Array(0), close: () => undefined };
  if (first.status === 200)
    throw new DataError(`${name}: the server gives no parts of files (HTTP ranges); download the file, and name it`);
  if (first.status !== 206 || total === undefined)
    throw new DataError(`${name} cannot be read (the server answers ${first.status}); ${cure}`);
  const foreign = foreignContent(first.bytes, holds);
  if (foreign !== undefined) throw new DataError(`${name} ${foreign}`);
  const sizeBytes = Number(total);
  const tag = first.headers.get("etag");
  // a weak one does not stand for the same bytes
  const etag = tag?.startsWith('"') === true ? tag : undefined;
  const version = etag ?? first.headers.get("last-modified") ?? undefined;
  return {
    name,
    sizeBytes,
    etag,
    async read(begin, end) {
      if (begin === end) return new Uint8Array(0);
      const { bytes, status } = await requestPart(address, `bytes=${begin}-${end - 1}`, version, cure);
      if (status === 200) throw new DataError(`${name} has changed while it was read; begin again`);
      if (bytes.length !== end - begin)
        throw new DataError(
          `${name}: the server gave ${bytes.length} bytes of ${end - begin} from byte ${begin} on; download the file, and name it`,
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
 * Open a file, by its path or by its address, whose server must give parts of files (HTTP ranges). Requests that fail
 * for the moment are made anew, three times; a file that changes meanwhile is told, not mixed.
 *
 * @param holds what the file must hold; first bytes of another format are refused.
 * @throws DataError that ends with `cure` where it cannot be read.
 */
export const openSource = async (place: string, cure: string, holds: FileContent): Promise<ByteSource> =>
  isAddress(place) ? openAddress(place, cure, holds) : openLocal(place, cure, holds);
