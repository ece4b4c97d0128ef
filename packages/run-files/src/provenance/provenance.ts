import { rename, rm, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, hostname, totalmem } from "node:os";
import { join } from "node:path";
import { savedStarts } from "./saved-starts.ts";
import { recordedEnvironment } from "./recorded-environment.ts";
import { readGit } from "./read-git.ts";
import { graphicsCards } from "./graphics-cards.ts";
import { redactCommand } from "./redact-command.ts";
import { provenanceFile } from "../files/run-file-names.ts";

/** Name of the file with the uncommitted changes of the working tree. */
export const changesFile = "changes.diff";

/** How a run ended, as reported by the run. */
export interface Ended {
  readonly how: "finished" | "failed" | "stopped";
  readonly reason?: string | undefined;
}

/** Maximum number of earlier starts recorded for a run. */
const maxEarlier = 20;

/**
 * Records the provenance of a run in its output folder: commit and uncommitted changes, versions, machine, command, and
 * how the run ended. Files are written in parallel with training: the run waits for them only at its end, and does not
 * fail if they cannot be written.
 */
export class Provenance {
  private readonly folder: string;
  private facts: Readonly<Record<string, unknown>>;
  private writes: Promise<void>;
  private fault: string | undefined;

  /**
   * Starts to record the provenance of a run.
   * @param totalSteps Number of steps of the complete run.
   * @param version Version of the running program.
   */
  constructor(folder: string, totalSteps: number, version: string) {
    this.folder = folder;
    const earlier = savedStarts(join(folder, provenanceFile)).slice(-maxEarlier);
    this.facts = {
      format: "skein-provenance",
      version: 1,
      startedAt: new Date().toISOString(),
      totalSteps,
      command: redactCommand(process.argv.slice(2)),
      folder: process.cwd(),
      host: hostname(),
      pid: process.pid,
      versions: { skein: version, node: process.versions.node, v8: process.versions.v8 },
      machine: {
        platform: `${process.platform} ${process.arch}`,
        processor: cpus()[0]?.model.trim() ?? "unknown",
        cores: availableParallelism(),
        memoryBytes: totalmem(),
        graphics: graphicsCards(),
      },
      environment: recordedEnvironment(process.env),
      ...(earlier.length > 0 && { earlier }),
    };
    this.writes = this.write().then(() => this.addGit());
  }

  /** Records how the run ended. Waits for all writes. @returns an error message if a file could not be written. */
  async end({ how, reason }: Ended): Promise<string | undefined> {
    await this.writes;
    this.facts = {
      ...this.facts,
      ended: { how, at: new Date().toISOString(), ...(reason !== undefined && { reason }) },
    };
    await this.write();
    return this.fault;
  }

  private async addGit(): Promise<void> {
    const git = await readGit(process.cwd());
    if (git === undefined) return;
    const { changes, ...facts } = git;
    this.facts = { ...this.facts, git: { ...facts, ...(changes !== undefined && { changes: changesFile }) } };
    if (changes !== undefined) await this.replace(changesFile, changes);
    await this.write();
  }

  private write(): Promise<void> {
    return this.replace(provenanceFile, `${JSON.stringify(this.facts, undefined, 2)}\n`);
  }

  /**
   * Replaces a file without flushing it to disk, because waiting for the disk costs more than losing the file in a
   * power failure.
   */
  private async replace(name: string, content: string | Uint8Array): Promise<void> {
    const path = join(this.folder, name);
    try {
      await rm(`${path}.tmp`, { force: true }); // a symbolic link at this path would redirect the write
      await writeFile(`${path}.tmp`, content, { flag: "wx" });
      await rename(`${path}.tmp`, path);
    } catch (error) {
      this.fault ??= `${path} was not written (${(error as Error).message}); the run is not affected`;
      await rm(`${path}.tmp`, { force: true }).catch(() => undefined);
    }
  }
}
