import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { FileMetaData } from "hyparquet";
import { threadFile } from "@skein/tensor-core/backend";
import { DataError } from "../errors.ts";
import type { ByteSource } from "./byte-source.ts";
import type { FromParquetWorker, ParquetRequest, ParquetWorkerInput, ToParquetWorker } from "./parquet-worker.ts";
import { freeMemory } from "./require-memory.ts";
import { Semaphore } from "./semaphore.ts";

/** Fixed part of the timeout for a page, in seconds. An intact page of 1 MiB takes hundredths of a second. */
const baseTimeoutSeconds = 10;
/** Lowest accepted reading speed in bytes per second. Determines the size-dependent part of the timeout. */
const bytesPerSecond = 1e6;
const tickMilliseconds = 1000;
/** Time in milliseconds after which an idle thread ends. Another file usually follows soon, or not at all. */
const idleMilliseconds = 500;

/** Error of a failed request: the parser's error, or the reason why the thread ended. */
class ParquetFault extends Error {}

/** A request to the Parquet thread that has not completed. */
interface Pending {
  readonly id: number;
  readonly source: ByteSource;
  readonly promise: PromiseWithResolvers<unknown>;
  /** Number of reads in progress, for which the thread is waiting. */
  numReads: number;
  bytes: number;
  silentSeconds: number;
  pages: number;
}

/** Thread that reads Parquet files, one request at a time. */
class ParquetThread {
  private readonly progress = new Int32Array(new SharedArrayBuffer(4));
  private readonly worker: Worker;
  private isReady = false;
  private numRequests = 0;
  private pending: Pending | undefined;
  private idle: NodeJS.Timeout | undefined;
  isOver = false;

  constructor() {
    const input: ParquetWorkerInput = { progress: this.progress };
    this.worker = new Worker(
      threadFile(() => new URL("./parquet-worker.ts", import.meta.url), "@skein/data", existsSync),
      {
        workerData: input,
        name: "skein-parquet",
        resourceLimits: { maxOldGenerationSizeMb: Math.max(64, Math.floor(freeMemory() / 2 ** 21)) },
      },
    );
    this.worker.on("message", (message: FromParquetWorker) => void this.handle(message));
    this.worker.on("error", (error: Error & { readonly code?: string }) =>
      this.fail(
        error.code === "ERR_WORKER_OUT_OF_MEMORY"
          ? "it needs more memory than available"
          : error.message.split("\n")[0]!,
      ),
    );
    this.worker.once("exit", () => this.fail("the thread that reads it has exited"));
  }

  /** Sends a request to the thread, and returns its result. @throws ParquetFault, and errors of `source`. */
  async request(source: ByteSource, rows?: ParquetRequest["rows"]): Promise<unknown> {
    clearTimeout(this.idle);
    this.worker.ref();
    const pending: Pending = {
      id: this.numRequests++,
      source,
      promise: Promise.withResolvers(),
      numReads: 0,
      bytes: 0,
      silentSeconds: 0,
      pages: 0,
    };
    this.pending = pending;
    this.post({
      type: "request",
      id: pending.id,
      fileBytes: source.sizeBytes,
      ...(rows !== undefined && { rows }),
    });
    const clock = setInterval(() => this.tick(pending), tickMilliseconds);
    try {
      return await pending.promise.promise;
    } finally {
      clearInterval(clock);
      this.pending = undefined;
      this.worker.unref();
      this.idle = setTimeout(() => this.end(), idleMilliseconds).unref();
    }
  }

  private post(message: ToParquetWorker): void {
    if (message.type === "bytes") this.worker.postMessage(message, [message.bytes.buffer]);
    else this.worker.postMessage(message);
  }

  private async handle(message: FromParquetWorker): Promise<void> {
    const { pending } = this;
    if (message.type === "ready") this.isReady = true;
    if (pending === undefined) return;
    pending.silentSeconds = 0;
    if (message.type === "done") pending.promise.resolve(message.result);
    else if (message.type === "failed") pending.promise.reject(new ParquetFault(message.message));
    else if (message.type === "read" && message.request === pending.id) await this.read(pending, message);
  }

  private async read(pending: Pending, { id, begin, end }: FromParquetWorker & { type: "read" }): Promise<void> {
    const { source, promise } = pending;
    pending.numReads++;
    try {
      if (!(begin >= 0 && begin <= end && end <= source.sizeBytes))
        throw new ParquetFault(`it has ${source.sizeBytes} bytes, but refers to bytes ${begin} to ${end}`);
      const bytes = await source.read(begin, end);
      pending.bytes += bytes.length;
      if (this.pending === pending) this.post({ type: "bytes", id, bytes });
    } catch (error) {
      promise.reject(error as Error);
      if (this.pending === pending) this.end(); // the thread is waiting for the bytes
    } finally {
      pending.numReads--;
      pending.silentSeconds = 0;
    }
  }

  /**
   * Ends the thread if a request makes no progress within its timeout. Counts ticks instead of measuring time, so that
   * a request of a suspended process does not time out.
   */
  private tick(pending: Pending): void {
    const pages = Atomics.load(this.progress, 0);
    if (!this.isReady || pending.numReads > 0 || pages !== pending.pages) pending.silentSeconds = 0;
    else pending.silentSeconds++;
    pending.pages = pages;
    if (pending.silentSeconds <= baseTimeoutSeconds + pending.bytes / bytesPerSecond) return;
    this.fail(`reading it does not finish, ${pending.silentSeconds} s after the last page`);
    this.end();
  }

  private fail(why: string): void {
    this.isOver = true;
    this.pending?.promise.reject(new ParquetFault(why));
  }

  private end(): void {
    this.isOver = true;
    void this.worker.terminate();
  }
}

/** Maximum number of Parquet threads per thread that imports this module. Each Parquet thread needs about 20 MB. */
const numThreads = 4;
const semaphore = new Semaphore(numThreads);
const idleThreads: ParquetThread[] = [];

/** Runs a request on an idle thread, or on a new thread. @throws ParquetFault, and errors of `source`. */
const performNow = async (source: ByteSource, rows?: ParquetRequest["rows"]): Promise<unknown> => {
  let thread = idleThreads.pop();
  while (thread?.isOver === true) thread = idleThreads.pop();
  thread ??= new ParquetThread();
  try {
    return await thread.request(source, rows);
  } finally {
    if (!thread.isOver) idleThreads.push(thread);
  }
};

const perform = (source: ByteSource, rows?: ParquetRequest["rows"]): Promise<unknown> =>
  semaphore.take(() => performNow(source, rows));

const explained = async <T>(name: string, work: Promise<unknown>): Promise<T> => {
  try {
    return (await work) as T;
  } catch (error) {
    if (!(error instanceof ParquetFault)) throw error;
    throw new DataError(`${name} cannot be read as Parquet (${error.message}); give an intact Parquet file`, {
      cause: error,
    });
  }
};

const isListOfObjects = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "object" && one !== null);

/**
 * Rejects metadata with wrong types. The parser does not check types, so that a field that should be a list may be a
 * number or bytes.
 */
const requireLists = async (work: Promise<unknown>): Promise<unknown> => {
  const metadata = await work;
  const { schema, row_groups: groups, key_value_metadata: notes = [] } = metadata as FileMetaData;
  for (const [name, list] of Object.entries({ schema, groups, notes }))
    if (!isListOfObjects(list)) throw new ParquetFault(`the ${name} in its footer are damaged`);
  return metadata;
};

/** Reads the metadata of a file. @throws DataError if the file is not Parquet, or is damaged. */
export const readParquetMetadata = (source: ByteSource): Promise<FileMetaData> =>
  explained(source.name, requireLists(perform(source)));

/** Reads rows of some columns; text is returned as UTF-8 bytes. @throws DataError if the file is damaged. */
export const readParquetRows = (
  source: ByteSource,
  rows: NonNullable<ParquetRequest["rows"]>,
): Promise<readonly (readonly unknown[])[]> => explained(source.name, perform(source, rows));
