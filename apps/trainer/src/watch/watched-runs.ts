import { hostname } from "node:os";
import { join } from "node:path";
import { metricsFile } from "../run/metrics.ts";
import { findRuns } from "./find-runs.ts";
import { MetricTail } from "./metric-tail.ts";
import { factsOf, type RunFacts } from "./run-facts.ts";
import { readRunFiles, type RunFiles } from "./run-files.ts";

interface WatchedRun {
  readonly id: string;
  readonly folder: string;
  readonly tail: MetricTail;
  files: RunFiles;
  facts: RunFacts | undefined;
  reading: Promise<void> | undefined;
}

const noFiles: RunFiles = { options: {}, summary: undefined, summaryWrittenAt: undefined, provenance: undefined };

/** All runs below a folder, kept up to date by looking: file systems that are shared tell nobody of changes. */
export class WatchedRuns {
  readonly root: string;
  private readonly runs = new Map<string, WatchedRun>();
  private readonly host = hostname();

  constructor(root: string) {
    this.root = root;
  }

  /** Find runs that have come, and forget those that are gone. @returns ids of the latter. */
  async find(): Promise<string[]> {
    const found = new Set(await findRuns(this.root));
    for (const id of found) {
      if (this.runs.has(id)) continue;
      const folder = join(this.root, id);
      const tail = new MetricTail(join(folder, metricsFile));
      this.runs.set(id, { id, folder, tail, files: noFiles, facts: undefined, reading: undefined });
    }
    const gone = [...this.runs.keys()].filter((id) => !found.has(id));
    for (const id of gone) this.runs.delete(id);
    return gone;
  }

  get ids(): string[] {
    return [...this.runs.keys()];
  }

  folderOf(id: string): string | undefined {
    return this.runs.get(id)?.folder;
  }

  filesOf(id: string): RunFiles | undefined {
    return this.runs.get(id)?.files;
  }

  factsOf(id: string): RunFacts | undefined {
    return this.runs.get(id)?.facts;
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

  /** Read what is new of a run. @returns its facts where they have changed. */
  async look(id: string): Promise<RunFacts | undefined> {
    const run = this.runs.get(id);
    if (run === undefined) return undefined;
    const before = run.facts;
    run.reading ??= this.read(run).finally(() => {
      run.reading = undefined;
    });
    await run.reading;
    return JSON.stringify(before) === JSON.stringify(run.facts) ? undefined : run.facts;
  }

  /** The facts of a run, of what is there now: a look that is under way may have begun before. */
  async factsNow(id: string): Promise<RunFacts | undefined> {
    await this.runs.get(id)?.reading;
    await this.look(id);
    return this.factsOf(id);
  }

  private async read(run: WatchedRun): Promise<void> {
    try {
      await run.tail.read();
    } catch {
      return; // deleted, or being replaced: the next search settles it
    }
    run.files = await readRunFiles(run.folder);
    run.facts = factsOf(run.id, run.tail, run.files, Date.now(), this.host);
  }
}
