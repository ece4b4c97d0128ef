import { parentPort, workerData } from "node:worker_threads";
import { FolderSearch, type FoundRun, type KnownRun, readRun, type RunReading } from "@skein/run-files/node";
import { threadIsReady } from "./deadline-thread.ts";

// Entry point of the thread that searches for runs and reads them, for `WatchedRuns`. The thread can be terminated
// while it is busy.

/** Request to the loader thread. A search continues where the previous search stopped. */
export type LoaderRequest = { readonly kind: "search" } | { readonly kind: "read"; readonly run: KnownRun };

export interface SearchAnswer {
  readonly runs: readonly FoundRun[];
  /** Whether the search has visited all folders. */
  readonly isWhole: boolean;
  /** Duration of the search in milliseconds. */
  readonly milliseconds: number;
}

/** Maximum time, in milliseconds, for which a search for runs may delay reads of runs. */
const searchSlice = 50;

const search = new FolderSearch(workerData as string);
let sweep: ReturnType<FolderSearch["sweep"]> | undefined;

const continueSearch = (): SearchAnswer => {
  const began = performance.now();
  sweep ??= search.sweep();
  const runs: FoundRun[] = [];
  let milliseconds = 0;
  for (let one = sweep.next(); ; one = sweep.next()) {
    milliseconds = performance.now() - began;
    if (one.done === true) break;
    if (one.value !== undefined) runs.push(one.value);
    if (milliseconds > searchSlice) return { runs, isWhole: false, milliseconds };
  }
  sweep = undefined;
  return { runs, isWhole: true, milliseconds };
};

const read = async (run: KnownRun): Promise<void> => {
  const reading: RunReading = await readRun(run);
  parentPort!.postMessage(reading, reading.tail === undefined ? [] : [reading.tail.piece.buffer]);
};

// Responses are sent in the order of the requests.
let last: Promise<void> = Promise.resolve();
parentPort!.on("message", (request: LoaderRequest) => {
  last = last.then(() => (request.kind === "search" ? parentPort!.postMessage(continueSearch()) : read(request.run)));
});
parentPort!.postMessage(threadIsReady);
