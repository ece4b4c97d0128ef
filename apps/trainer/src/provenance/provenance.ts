import { rename, rm, writeFile } from "node:fs/promises";
import { availableParallelism, cpus, hostname, totalmem } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { savedStarts } from "./saved-starts.ts";
import { toldEnvironment } from "./told-environment.ts";
import { readGit } from "./read-git.ts";
import { graphicsCards } from "./graphics-cards.ts";
import { toldCommand } from "./told-command.ts";
import { provenanceFile } from "../run-files/run-file-names.ts";

export { provenanceFile };
/** What the working tree had beside its commit. */
export const changesFile = "changes.diff";

/** How a run ended, by its own words. */
export interface Ended {
  readonly how: "finished" | "failed" | "stopped";
  readonly reason?: string | undefined;
}

/** Earlier starts of a run that are kept. */
const mostEarlier = 20;

/**
 * Keeps where a run comes from in its output folder: commit and changes, versions, machine, command, and how it ended.
 * No part of the job, and written beside training: a run never waits for it before its end, and none fails of it.
 */
export class Provenance {
  private readonly folder: string;
  private facts: Readonly<Record<string, unknown>>;
  private writes: Promise<void>;
  private fault: string | undefined;

  /** @param totalSteps that the run is to do in all. */
  constructor(folder: string, totalSteps: number) {
    this.folder = folder;
    const earlier = savedStarts(join(folder, provenanceFile)).slice(-mostEarlier);
    this.facts = {
      format: "skein-provenance",
      version: 1,
      startedAt: new Date().toISOString(),
      totalSteps,
      command: toldCommand(process.argv.slice(2)),
      folder: process.cwd(),
      host: hostname(),
      pid: process.pid,
      versions: { skein: packageJson.version, node: process.versions.node, v8: process.versions.v8 },
      machine: {
        platform: `${process.platform} ${process.arch}`,
        processor: cpus()[0]?.model.trim() ?? "unknown",
        cores: availableParallelism(),
        memoryBytes: totalmem(),
        graphics: graphicsCards(),
      },
      environment: toldEnvironment(process.env),
      ...(earlier.length > 0 && { earlier }),
    };
    this.writes = this.write().then(() => this.addGit());
  }

  /** Add how the run ended. @returns what could not be written, once all is. */
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

  /** Not flushed to the disk: losing it with the power costs less than waiting for it. */
  private async replace(name: string, content: string | Uint8Array): Promise<void> {
    const path = join(this.folder, name);
    try {
      await rm(`${path}.tmp`, { force: true }); // nothing is written through a link that lies there
      await writeFile(`${path}.tmp`, content, { flag: "wx" });
      await rename(`${path}.tmp`, path);
    } catch (error) {
      this.fault ??= `${path} was not written (${(error as Error).message}); the run is not touched by it`;
      await rm(`${path}.tmp`, { force: true }).catch(() => undefined);
    }
  }
}
