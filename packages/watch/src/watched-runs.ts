import { hostname } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { startThread } from "@skein/collectives/node";
import {
  factsOf,
  type FoundRun,
  type KnownRun,
  MetricTail,
  type RunFacts,
  type RunFiles,
  type RunReading,
} from "@skein/run-files/node";
import { DeadlineThread } from "./deadline-thread.ts";
import type { LoaderRequest, SearchAnswer } from "./loader-thread.ts";

interface WatchedRun {
  readonly id: string;
  readonly folder: string;
  readonly tail: MetricTail;
  /** Result of the last search that found the run. */
  found: FoundRun;
  stamps: KnownRun["stamps"];
  files: RunFiles;
  facts: RunFacts | undefined;
  /** Reason why the metrics cannot be read. Undefined: the metrics can be read. */
  fault: string | undefined;
  /** Number of consecutive reads that exceeded the time limit. */
  failures: number;
  /** Time before which the run is not read again after timeouts, in milliseconds of `performance.now()`. */
  waitsUntil: number;
  lookedAt: number;
  /** Whether the last read returned new metrics. */
  hasRead: boolean;
  reading: Promise<void> | undefined;
}

const noFiles: RunFiles = {
  options: {},
  summary: undefined,
  summaryWrittenAt: undefined,
  provenance: undefined,
  faults: [],
};

/** Memory limit of the reading thread in MiB. A folder that needs more memory ends the thread, not the server. */
const threadMegabytes = 1024;
/** Time limit in milliseconds for reading a run. */
const deadlineMilliseconds = 10_000;
/** Pause in milliseconds before a run is read again after a timeout. Each further timeout doubles the pause. */
const minPause = 10_000;
/** Maximum pause in milliseconds before a run is read again after timeouts. */
const maxPause = 600_000;

const startLoader = (root: string): Worker =>
  startThread(
    () => new URL("./loader-thread.ts", import.meta.url),
    { workerData: root, name: "skein-watch", resourceLimits: { maxOldGenerationSizeMb: threadMegabytes } },
    "skein-train",
  );

export interface WatchedRunsOptions {
  /** Time limit of each read of a run in milliseconds. Default: 10 s. */
  readonly deadline?: number;
  /** Starts the thread that searches for runs and reads them. */
  readonly start?: (root: string) => Worker;
}

/**
 * All runs below a folder, kept up to date by polling, because shared file systems do not report changes. Searching and
 * reading run in a separate thread. Each read returns a limited number of metrics bytes, so that a run does not delay
 * other runs.
 */
export class WatchedRuns {
  readonly root: string;
  /** Ids of the runs that were running when they were last read. */
  readonly running: Set<string> = new Set();
  private readonly runs = new Map<string, WatchedRun>();
  private readonly thread: DeadlineThread;
  private readonly host = hostname();
  private turn: Promise<void> = Promise.resolve();
  private finding: Promise<string[]> = Promise.resolve([]);

  constructor(root: string, { deadline = deadlineMilliseconds, start = startLoader }: WatchedRunsOptions = {}) {
    this.root = root;
    this.thread = new DeadlineThread(() => start(root), deadline);
  }

  /**
   * Finds new runs, and removes deleted runs.
   *
   * @param changed Called with the ids of runs that are new or may have changed, as soon as they are found, and with
   * the milliseconds that this slice of the search took.
   * @returns the ids of deleted runs.
   */
  find(changed: (ids: readonly string[], milliseconds: number) => void = () => undefined): Promise<string[]> {
    // Searches run one after the other, because the thread runs one search at a time.
    const finding = this.finding.then(() => this.findOnce(changed));
    this.finding = finding.catch(() => []);
    return finding;
  }

  private async findOnce(changed: (ids: readonly string[], milliseconds: number) => void): Promise<string[]> {
    const found = new Set<string>();
    for (let isWhole = false; !isWhole; ) {
      const answer = await this.thread.ask<SearchAnswer>({ kind: "search" } satisfies LoaderRequest);
      ({ isWhole } = answer);
      for (const { id } of answer.runs) found.add(id);
      const ids = answer.runs.filter((run) => this.takeFound(run)).map(({ id }) => id);
      changed(ids, answer.milliseconds);
    }
    const gone = [...this.runs.keys()].filter((id) => !found.has(id));
    for (const id of gone) {
      this.runs.delete(id);
      this.running.delete(id);
    }
    return gone;
  }

  get ids(): string[] {
    return [...this.runs.keys()];
  }

  folderOf(id: string): string | undefined {
    return this.runs.get(id)?.folder;
  }

  factsOf(id: string): RunFacts | undefined {
    return this.runs.get(id)?.facts;
  }

  /** Returns the time at which a run was last written, as of the last search, in milliseconds since 1970. */
  writtenAt(id: string): number {
    return this.runs.get(id)?.found.writtenAt ?? 0;
  }

  /**
   * Returns the time at which a run was last read, in milliseconds of `performance.now()`; −Infinity if it has not been
   * read.
   */
  lookedAt(id: string): number {
    return this.runs.get(id)?.lookedAt ?? -Infinity;
  }

  /**
   * Whether a run must be read even if it seems unchanged: after the pause that follows a timeout, or `milliseconds`
   * after the last read.
   */
  isDue(id: string, milliseconds: number): boolean {
    const run = this.runs.get(id);
    if (run === undefined) return false;
    const now = performance.now();
    return run.failures > 0 ? now >= run.waitsUntil : now - run.lookedAt >= milliseconds;
  }

  /**
   * Returns the metrics of a run. Reads the run if it has not been read yet. @returns undefined if there is no such
   * run.
   */
  async tailOf(id: string): Promise<MetricTail | undefined> {
    const run = this.runs.get(id);
    if (run === undefined) return undefined;
    if (run.facts === undefined) await this.look(id);
    return run.tail;
  }

  /** Summaries of all runs, each from the last read of the run. */
  get facts(): RunFacts[] {
    return [...this.runs.values()].flatMap(({ facts }) => facts ?? []);
  }

  /**
   * Reads new data of a run, up to the size limit of a single read. `loaded` in the run's summary shows whether more
   * data remains.
   *
   * @returns the summary of the run if it has changed.
   */
  async look(id: string): Promise<RunFacts | undefined> {
    const run = this.runs.get(id);
    if (run === undefined || performance.now() < run.waitsUntil) return undefined;
    const before = run.facts;
    run.reading ??= this.read(run).finally(() => {
      run.reading = undefined;
    });
    await run.reading;
    return JSON.stringify(before) === JSON.stringify(run.facts) ? undefined : run.facts;
  }

  /** Reads all new data of a run. */
  async load(id: string): Promise<void> {
    do await this.look(id);
    while (this.isBehind(id));
  }

  /** Whether more metrics of a run can be read immediately. */
  isBehind(id: string): boolean {
    const run = this.runs.get(id);
    return run !== undefined && run.hasRead && run.tail.share < 1;
  }

  /** Returns the current summary of a run. A read in progress may have started too early, so the run is read again. */
  async factsNow(id: string): Promise<RunFacts | undefined> {
    await this.runs.get(id)?.reading;
    await this.look(id);
    return this.factsOf(id);
  }

  /** Terminates the reading thread, even if it is busy. */
  close(): Promise<void> {
    return this.thread.close();
  }

  /** Runs `act` after all earlier actions. Between two actions, the event loop can handle requests of pages. */
  private inTurn(act: () => void): Promise<void> {
    const turn = this.turn.then(() => new Promise<void>((resolve) => setImmediate(resolve))).then(act);
    this.turn = turn.catch(() => undefined);
    return turn;
  }

  /** Stores a run that the search has found. @returns whether the run is new or may have changed. */
  private takeFound(found: FoundRun): boolean {
    const { id } = found;
    const run = this.runs.get(id);
    if (run !== undefined) {
      const isSame = found.state.every((number, index) => number === run.found.state[index]);
      run.found = found;
      return !isSame;
    }
    const folder = join(this.root, id);
    this.runs.set(id, {
      id,
      folder,
      tail: new MetricTail(),
      found,
      stamps: undefined,
      files: noFiles,
      facts: undefined,
      fault: undefined,
      failures: 0,
      waitsUntil: -Infinity,
      lookedAt: -Infinity,
      hasRead: false,
      reading: undefined,
    });
    return true;
  }

  private async read(run: WatchedRun): Promise<void> {
    const { folder, tail, stamps } = run;
    try {
      const known: KnownRun = { folder, place: tail.place, stamps };
      const reading = await this.thread.ask<RunReading>({ kind: "read", run: known } satisfies LoaderRequest);
      run.failures = 0;
      run.hasRead = reading.tail !== undefined && reading.tail.piece.length > 0;
      if (reading.isGone === true) return;
      run.fault = reading.fault;
      if (reading.beside !== undefined) ({ stamps: run.stamps, files: run.files } = reading.beside);
      if (reading.tail !== undefined) await this.inTurn(() => tail.take(reading.tail!));
    } catch (error) {
      const pause = Math.min(maxPause, minPause * 2 ** run.failures++);
      run.hasRead = false;
      run.waitsUntil = performance.now() + pause;
      run.fault = `${(error as Error).message}; the next attempt is in ${Math.round(pause / 1000)} s`;
    }
    run.lookedAt = performance.now();
    run.facts = factsOf(run.id, tail, run.files, Date.now(), this.host, run.fault);
    if (run.facts.state === "running" && this.runs.get(run.id) === run) this.running.add(run.id);
    else this.running.delete(run.id);
  }
}
