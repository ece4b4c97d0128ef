import { hostname } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { startThread } from "@skein/collectives/node";
import { DeadlineThread } from "./deadline-thread.ts";
import type { FoundRun } from "../run-readers/folder-search.ts";
import type { LoaderRequest, SearchAnswer } from "./loader-thread.ts";
import { MetricTail } from "../run-readers/metric-tail.ts";
import type { KnownRun, RunReading } from "../run-readers/read-run.ts";
import { factsOf, type RunFacts } from "../run-readers/run-facts.ts";
import type { RunFiles } from "../run-readers/run-files.ts";

interface WatchedRun {
  readonly id: string;
  readonly folder: string;
  readonly tail: MetricTail;
  /** As the last search found it. */
  found: FoundRun;
  stamps: KnownRun["stamps"];
  files: RunFiles;
  facts: RunFacts | undefined;
  /** Why the metrics cannot be read, or the run took too long. */
  fault: string | undefined;
  /** Looks in a row that took too long. */
  failures: number;
  /** When the run may be looked at again after that, milliseconds of the clock of this process. */
  waitsUntil: number;
  lookedAt: number;
  /** Whether the last look has read something of the metrics. */
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

/** Memory of the thread that reads, MiB: a folder that takes more ends the thread, and not the page. */
const threadMegabytes = 1024;
/** How long a run may take to be read, and how long it is left alone after that, milliseconds; doubled each time. */
const deadlineMilliseconds = 10_000;
const leastPause = 10_000;
const mostPause = 600_000;

const startLoader = (root: string): Worker =>
  startThread(
    () => new URL("./loader-thread.ts", import.meta.url),
    { workerData: root, name: "skein-watch", resourceLimits: { maxOldGenerationSizeMb: threadMegabytes } },
    "skein-train",
  );

export interface WatchedRunsOptions {
  /** Time for each look at a run, milliseconds. Default: 10 s. */
  readonly deadline?: number;
  /** Starts the thread that searches and reads. */
  readonly start?: (root: string) => Worker;
}

/**
 * All runs below a folder, kept up to date by looking: file systems that are shared tell nobody of changes. A thread
 * searches and reads; each look reads a piece of the metrics at most, so that no run keeps others waiting.
 */
export class WatchedRuns {
  readonly root: string;
  /** Ids of those that go on, as of the last look. */
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
   * Find runs that have come, and forget those that are gone.
   *
   * @param changed takes ids of runs that have come or may have changed, as soon as they are found, and the time that
   * the search for them took.
   * @returns ids of those that are gone.
   */
  find(changed: (ids: readonly string[], milliseconds: number) => void = () => undefined): Promise<string[]> {
    // One after the other: the thread has one search at a time.
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

  /** When a run was written to last, as the last search found it; milliseconds since 1970. */
  writtenAt(id: string): number {
    return this.runs.get(id)?.found.writtenAt ?? 0;
  }

  /** When a run was looked at last, milliseconds of the clock of this process. */
  lookedAt(id: string): number {
    return this.runs.get(id)?.lookedAt ?? -Infinity;
  }

  /** Whether a run is to be looked at although it seems unchanged: after a pause, or after some milliseconds. */
  isDue(id: string, milliseconds: number): boolean {
    const run = this.runs.get(id);
    if (run === undefined) return false;
    const now = performance.now();
    return run.failures > 0 ? now >= run.waitsUntil : now - run.lookedAt >= milliseconds;
  }

  /** What is known, also of a run that nobody has looked at yet. @returns undefined where there is none. */
  async tailOf(id: string): Promise<MetricTail | undefined> {
    const run = this.runs.get(id);
    if (run === undefined) return undefined;
    if (run.facts === undefined) await this.look(id);
    return run.tail;
  }

  /** Every run's facts, as of the last look. */
  get facts(): RunFacts[] {
    return [...this.runs.values()].flatMap(({ facts }) => facts ?? []);
  }

  /**
   * Read what is new of a run, a piece of its metrics at most: `loaded` of its facts says whether that was all.
   *
   * @returns its facts where they have changed.
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

  /** Read all that is new of a run. */
  async load(id: string): Promise<void> {
    do await this.look(id);
    while (this.isBehind(id));
  }

  /** Whether more of a run's metrics can be read at once. */
  isBehind(id: string): boolean {
    const run = this.runs.get(id);
    return run !== undefined && run.hasRead && run.tail.share < 1;
  }

  /** The facts of a run, of what is there now: a look that is under way may have begun before. */
  async factsNow(id: string): Promise<RunFacts | undefined> {
    await this.runs.get(id)?.reading;
    await this.look(id);
    return this.factsOf(id);
  }

  /** End the thread that reads, whatever it does. */
  close(): Promise<void> {
    return this.thread.close();
  }

  /** One piece of one run after the other, and requests of pages between them. */
  private inTurn(act: () => void): Promise<void> {
    const turn = this.turn.then(() => new Promise<void>((resolve) => setImmediate(resolve))).then(act);
    this.turn = turn.catch(() => undefined);
    return turn;
  }

  /** @returns whether the run has come or may have changed. */
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
      const pause = Math.min(mostPause, leastPause * 2 ** run.failures++);
      run.hasRead = false;
      run.waitsUntil = performance.now() + pause;
      run.fault = `${(error as Error).message}; the next try is in ${Math.round(pause / 1000)} s`;
    }
    run.lookedAt = performance.now();
    run.facts = factsOf(run.id, tail, run.files, Date.now(), this.host, run.fault);
    if (run.facts.state === "running" && this.runs.get(run.id) === run) this.running.add(run.id);
    else this.running.delete(run.id);
  }
}
