import type { WatchedRuns } from "./watched-runs.ts";

export interface LookLoopInput {
  readonly runs: WatchedRuns;
  /** Milliseconds between looks at runs that are being written. */
  readonly lookEvery: number;
  /** Least milliseconds between searches for runs. */
  readonly findEvery: number;
  tell(changed: ReadonlySet<string>, gone: readonly string[]): void;
  /** Takes a line about a search that has failed. */
  note(line: string): void;
}

/** Runs that were written to within this many milliseconds are looked at often. */
const livelyFor = 120_000;
/** Looks that are asked of the thread at once: it always has something to do, and nobody waits long. */
const mostAtOnce = 16;
/** A search takes this part of the time at most; searches are no further apart than that, milliseconds. */
const searchShare = 0.01;
const longestPause = 30_000;
/** Milliseconds after which a run is looked at even if it seems to have ended, a few runs after each search. */
const lookAnyway = 300_000;
const mostAnyway = 500;
/** Milliseconds that a page opened at the start waits for all runs; the rest are sent when they are read. */
const firstWait = 1000;

/** Keeps runs up to date: searches for them, and looks at those that may have changed. */
export class LookLoop {
  /** Resolves when all runs have been looked at once, or after a second. */
  readonly first: Promise<void>;
  private readonly input: LookLoopInput;
  /** Ids of runs to be looked at, in this order. */
  private queue = new Set<string>();
  private numLooks = 0;
  /** Runs that nobody has looked at yet. */
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
      // Time alone changes what these are, and a process that has ended.
      this.enqueue(runs.running);
      this.enqueue(runs.ids.filter((id) => runs.isDue(id, lookAnyway)).slice(0, mostAnyway));
      this.fault = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.fault && !this.isClosed) note(`watch: ${runs.root} cannot be searched: ${message}`);
      this.fault = message;
      milliseconds = longestPause;
    }
    this.searchAt = performance.now() + Math.max(findEvery, Math.min(longestPause, milliseconds / searchShare));
    [this.isSearching, this.hasSearched] = [false, true];
    this.goOn();
  }

  private enqueue(ids: Iterable<string>): void {
    for (const id of ids) this.queue.add(id);
    this.goOn();
  }

  /** The newest first, as a page shows them. */
  private enqueueNewest(ids: readonly string[]): void {
    const { runs } = this.input;
    for (const id of ids) if (runs.lookedAt(id) === -Infinity) this.unseen.add(id);
    if (ids.length > 0)
      this.queue = new Set([...this.queue, ...ids].toSorted((a, b) => runs.writtenAt(b) - runs.writtenAt(a)));
    this.goOn();
  }

  private goOn(): void {
    for (const id of this.queue) {
      if (this.isClosed || this.numLooks === mostAtOnce) return;
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
    if (runs.isBehind(id)) this.queue.add(id); // behind the others
    if (this.changed.size > 0) this.telling ??= setTimeout(() => this.tell(), Math.min(50, this.input.lookEvery));
    this.numLooks--;
    this.goOn();
  }

  private tell(): void {
    const { changed } = this;
    [this.changed, this.telling] = [new Set(), undefined];
    if (!this.isClosed) this.input.tell(changed, []);
  }
}
