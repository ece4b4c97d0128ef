import type { WatchedRuns } from "./watched-runs.ts";

export interface LookLoopInput {
  readonly runs: WatchedRuns;
  /** Interval in milliseconds between checks of runs that are being written. */
  readonly lookEvery: number;
  /** Minimum interval in milliseconds between searches for runs. */
  readonly findEvery: number;
  tell(changed: ReadonlySet<string>, gone: readonly string[]): void;
  /** Called with a line about a failed search. */
  note(line: string): void;
}

/** Time in milliseconds after its last write during which a run is checked often. */
const livelyFor = 120_000;
/**
 * Maximum number of concurrent requests to the thread: enough to keep the thread busy, but few enough for short waits.
 */
const maxConcurrent = 16;
/** Maximum share of time spent searching for runs. */
const searchShare = 0.01;
/** Maximum pause between searches in milliseconds. Has priority over `searchShare`. */
const longestPause = 30_000;
/** Interval in milliseconds at which seemingly ended runs are checked again. */
const lookAnyway = 300_000;
/** Maximum number of seemingly ended runs that are checked after each search. */
const maxUnscheduled = 500;
/**
 * Maximum time in milliseconds that a page waits for all runs when the server starts. Runs that have not been read by
 * then are sent later.
 */
const firstWait = 1000;

/** Keeps runs up to date: searches for runs, and checks runs that may have changed. */
export class LookLoop {
  /** Resolves when all runs have been checked for the first time, or after one second. */
  readonly first: Promise<void>;
  private readonly input: LookLoopInput;
  /** Ids of the runs to check, in order. */
  private queue = new Set<string>();
  private numLooks = 0;
  /** Ids of the runs that have not been checked yet. */
  private readonly unseen = new Set<string>();
  private changed = new Set<string>();
  private isSearching = false;
  private hasSearched = false;
  private searchAt = -Infinity;
  private fault: string | undefined;
  private readonly begun = Promise.withResolvers<void>();
  private readonly timers: NodeJS.Timeout[];
  private telling: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(input: LookLoopInput) {
    this.input = input;
    this.first = this.begun.promise;
    this.timers = [setInterval(() => this.round(), input.lookEvery), setTimeout(() => this.begun.resolve(), firstWait)];
    this.round();
  }

  close(): void {
    this.isClosed = true;
    for (const timer of [...this.timers, this.telling]) clearTimeout(timer);
    this.begun.resolve();
  }

  private round(): void {
    const { runs } = this.input;
    if (!this.isSearching && performance.now() >= this.searchAt) void this.search();
    const lively = Date.now() - livelyFor;
    this.enqueue([...runs.running].filter((id) => runs.factsOf(id)!.writtenAt > lively));
  }

  private async search(): Promise<void> {
    const { runs, findEvery, tell, note } = this.input;
    this.isSearching = true;
    let milliseconds = 0;
    try {
      const gone = await runs.find((ids, spent) => {
        milliseconds += spent;
        this.enqueueNewest(ids);
      });
      for (const id of gone) this.unseen.delete(id);
      tell(new Set(), gone);
      // The state of these runs can change without a change of their files.
      this.enqueue(runs.running);
      this.enqueue(runs.ids.filter((id) => runs.isDue(id, lookAnyway)).slice(0, maxUnscheduled));
      this.fault = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.fault && !this.isClosed) note(`watch: ${runs.root} cannot be searched: ${message}`);
      this.fault = message;
      milliseconds = longestPause;
    }
    this.searchAt = performance.now() + Math.max(findEvery, Math.min(longestPause, milliseconds / searchShare));
    [this.isSearching, this.hasSearched] = [false, true];
    this.startReads();
  }

  private enqueue(ids: Iterable<string>): void {
    for (const id of ids) this.queue.add(id);
    this.startReads();
  }

  /** Queues runs. The queue is sorted newest first, like the list on the page. */
  private enqueueNewest(ids: readonly string[]): void {
    const { runs } = this.input;
    for (const id of ids) if (runs.lookedAt(id) === -Infinity) this.unseen.add(id);
    if (ids.length > 0)
      this.queue = new Set([...this.queue, ...ids].toSorted((a, b) => runs.writtenAt(b) - runs.writtenAt(a)));
    this.startReads();
  }

  private startReads(): void {
    for (const id of this.queue) {
      if (this.isClosed || this.numLooks === maxConcurrent) return;
      this.queue.delete(id);
      this.numLooks++;
      void this.look(id);
    }
    if (this.hasSearched && this.unseen.size === 0) this.begun.resolve();
  }

  private async look(id: string): Promise<void> {
    const { runs } = this.input;
    try {
      if ((await runs.look(id)) !== undefined) this.changed.add(id);
    } catch (error) {
      this.input.note(`watch: ${id}: ${(error as Error).message}`);
    }
    this.unseen.delete(id);
    if (runs.isBehind(id)) this.queue.add(id); // queued after the other runs
    if (this.changed.size > 0) this.telling ??= setTimeout(() => this.tell(), Math.min(50, this.input.lookEvery));
    this.numLooks--;
    this.startReads();
  }

  private tell(): void {
    const { changed } = this;
    [this.changed, this.telling] = [new Set(), undefined];
    if (!this.isClosed) this.input.tell(changed, []);
  }
}
