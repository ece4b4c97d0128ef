import { parentPort, workerData } from "node:worker_threads";
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetRead } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { InvariantError } from "@skein/tensor-core";
import { freeMemory } from "./require-memory.ts";

// Runs in a separate thread, because some damaged files cause an infinite loop in the parser, and others cause
// unhandled promise rejections.

/** Input of the worker thread. */
export interface ParquetWorkerInput {
  /** Number of pages read so far, one i32. */
  readonly progress: Int32Array<SharedArrayBuffer>;
}

/** A request for rows `rowStart` to `rowEnd` − 1 of some columns, or, without `rows`, for the metadata. */
export interface ParquetRequest {
  readonly type: "request";
  /** Id that distinguishes the reads of this request from the reads of an earlier request. */
  readonly id: number;
  readonly fileBytes: number;
  readonly rows?: {
    readonly metadata: FileMetaData;
    readonly columns: readonly string[];
    readonly rowStart: number;
    readonly rowEnd: number;
  };
}

/** Messages to the thread: a request, or bytes that the current request has read. */
export type ToParquetWorker =
  | ParquetRequest
  | { readonly type: "bytes"; readonly id: number; readonly bytes: Uint8Array<ArrayBuffer> };

/** Messages from the thread: ready, a byte range to read, or the end of a request. */
export type FromParquetWorker =
  | { readonly type: "ready" }
  | {
      readonly type: "read";
      readonly request: number;
      readonly id: number;
      readonly begin: number;
      readonly end: number;
    }
  | { readonly type: "done"; readonly result: unknown }
  | { readonly type: "failed"; readonly message: string };

const { progress } = workerData as ParquetWorkerInput;
if (parentPort === null) throw new InvariantError("the thread of a Parquet reader has no parent");
const port = parentPort;
const post = (message: FromParquetWorker): void => port.postMessage(message);

const advance = (): void => void Atomics.add(progress, 0, 1);

// Decompressors with limited memory per page, because each page declares its decompressed size.
const bounded = Object.fromEntries(
  Object.entries(compressors).map(([codec, unpack]) => [
    codec,
    (input: Uint8Array, outputBytes: number) => {
      advance();
      if (!(outputBytes >= 0 && outputBytes <= freeMemory()))
        throw new Error(`a page declares ${outputBytes} bytes after decompression, more than the available memory`);
      return unpack(input, outputBytes);
    },
  ]),
);

const reads = new Map<number, (bytes: ArrayBuffer) => void>();
let numReads = 0;

const fileOf = ({ id: request, fileBytes }: ParquetRequest): AsyncBuffer => ({
  byteLength: fileBytes,
  slice: (begin, end = fileBytes) => {
    // a negative offset counts from the end, as in slices of arrays
    const from = begin < 0 ? Math.max(0, fileBytes + begin) : begin;
    const id = numReads++;
    return new Promise<ArrayBuffer>((resolve) => {
      reads.set(id, resolve);
      post({ type: "read", request, id, begin: from, end: Math.min(end, fileBytes) });
    });
  },
});

const perform = async (request: ParquetRequest): Promise<unknown> => {
  const file = fileOf(request);
  const { rows: requested } = request;
  if (requested === undefined) return parquetMetadataAsync(file);
  let rows: readonly (readonly unknown[])[] = [];
  await parquetRead({
    ...requested,
    file,
    columns: [...requested.columns],
    compressors: bounded,
    parsers: { stringFromBytes: (bytes: Uint8Array | undefined) => bytes },
    onPage: advance,
    onComplete: (all) => {
      rows = all;
    },
  });
  return rows;
};

const respond = async (request: ParquetRequest): Promise<void> => {
  try {
    post({ type: "done", result: await perform(request) });
  } catch (error) {
    post({ type: "failed", message: (error as Error).message.split("\n")[0]! });
  }
  reads.clear();
};

// The promise of the request reports an error; other rejections repeat the same error.
process.on("unhandledRejection", () => undefined);
port.on("message", (message: ToParquetWorker) => {
  if (message.type === "request") void respond(message);
  else {
    reads.get(message.id)?.(message.bytes.buffer);
    reads.delete(message.id);
  }
});
post({ type: "ready" });
