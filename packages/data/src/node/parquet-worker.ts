import { parentPort, workerData } from "node:worker_threads";
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetRead } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { InvariantError } from "@skein/tensor-core";
import { freeMemory } from "./require-memory.ts";

// A thread of its own: some damaged files keep the parser in a loop, and of others it leaves promises behind that
// reject when nobody listens.

/** What the thread is started with. */
export interface ParquetWorkerInput {
  /** One i32: how many pages were read so far. */
  readonly progress: Int32Array<SharedArrayBuffer>;
}

/** A piece of work: rows `rowStart` to `rowEnd` − 1 of some columns. `rows` absent: the metadata. */
export interface ParquetRequest {
  readonly type: "request";
  /** Separates reads of this request from those of an earlier one. */
  readonly number: number;
  readonly fileBytes: number;
  readonly rows?: {
    readonly metadata: FileMetaData;
    readonly columns: readonly string[];
    readonly rowStart: number;
    readonly rowEnd: number;
  };
}

/** What is posted to the thread: a request, or bytes of the file of the present one. */
export type ToParquetWorker =
  | ParquetRequest
  | { readonly type: "bytes"; readonly id: number; readonly bytes: Uint8Array<ArrayBuffer> };

/** What the thread posts: that it is there, which bytes it needs, and how a request ended. */
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
const say = (message: FromParquetWorker): void => port.postMessage(message);

const advance = (): void => void Atomics.add(progress, 0, 1);

// Pages say themselves how large they become.
const bounded = Object.fromEntries(
  Object.entries(compressors).map(([codec, unpack]) => [
    codec,
    (input: Uint8Array, outputBytes: number) => {
      advance();
      if (!(outputBytes >= 0 && outputBytes <= freeMemory()))
        throw new Error(`a page says that it has ${outputBytes} bytes unpacked, more than there is memory`);
      return unpack(input, outputBytes);
    },
  ]),
);

const reads = new Map<number, (bytes: ArrayBuffer) => void>();
let numReads = 0;

const fileOf = ({ number, fileBytes }: ParquetRequest): AsyncBuffer => ({
  byteLength: fileBytes,
  slice: (begin, end = fileBytes) => {
    // from the end, as slices of arrays count
    const from = begin < 0 ? Math.max(0, fileBytes + begin) : begin;
    const id = numReads++;
    return new Promise<ArrayBuffer>((resolve) => {
      reads.set(id, resolve);
      say({ type: "read", request: number, id, begin: from, end: Math.min(end, fileBytes) });
    });
  },
});

const perform = async (request: ParquetRequest): Promise<unknown> => {
  const file = fileOf(request);
  const asked = request.rows;
  if (asked === undefined) return parquetMetadataAsync(file);
  let rows: readonly (readonly unknown[])[] = [];
  await parquetRead({
    ...asked,
    file,
    columns: [...asked.columns],
    compressors: bounded,
    parsers: { stringFromBytes: (bytes: Uint8Array | undefined) => bytes },
    onPage: advance,
    onComplete: (all) => {
      rows = all;
    },
  });
  return rows;
};

const answer = async (request: ParquetRequest): Promise<void> => {
  try {
    say({ type: "done", result: await perform(request) });
  } catch (error) {
    say({ type: "failed", message: (error as Error).message.split("\n")[0]! });
  }
  reads.clear();
};

// The promise that counts is that of the request; what rejects beside it says the same.
process.on("unhandledRejection", () => undefined);
port.on("message", (message: ToParquetWorker) => {
  if (message.type === "request") void answer(message);
  else {
    reads.get(message.id)?.(message.bytes.buffer);
    reads.delete(message.id);
  }
});
say({ type: "ready" });
