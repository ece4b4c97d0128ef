import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { ErrorReport } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { mpirunFlags, mpirunHost, stopShield } from "@skein/launch/node";
import { controllerVariable } from "../processes/stay-with-controller.ts";
import type { StartProcesses } from "./process-runner.ts";
import { childProcesses, memberArguments, memberVariables, reportPrefix } from "./start-processes.ts";

/**
 * Time in milliseconds that the coordinator has to identify a lost rank. Afterwards, the exit of mpirun is reported
 * instead.
 */
const identificationMilliseconds = 2000;

// Ranks report a lost rank to the controller immediately, so mpirun may kill the remaining ranks earlier than by
// default.
const onThisMachine = {
  hostfile: undefined,
  sshPort: undefined,
  sshKey: undefined,
  sshTrustsAnyHost: false,
  abortSeconds: 1,
};

/** Job file in a temporary folder that only this user can read. */
class JobFile {
  readonly path: string;
  private readonly folder: string;

  constructor(job: Job) {
    this.folder = mkdtempSync(join(tmpdir(), "skein-job-"));
    this.path = join(this.folder, "job.json");
    try {
      writeFileSync(this.path, JSON.stringify(job));
    } catch (error) {
      this.remove(); // writing fails if the disk is full
      throw error;
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts the ranks of a run with mpirun on this machine, one process per rank. */
export const startMpirun: StartProcesses = async ({ attempt, coordinator, secret }) => {
  const { job } = attempt.assignment;
  const host = await mpirunHost();
  const jobFile = new JobFile(job);
  const [program, ...args] = [
    ...(await stopShield(host.version)),
    "mpirun",
    ...mpirunFlags({ processes: job.ranks, ...onThisMachine }, host),
    ...memberArguments,
  ];
  const child = spawn(program!, args, {
    env: {
      ...process.env,
      [memberVariables.coordinator]: `${coordinator.host}:${coordinator.port}`,
      [memberVariables.secret]: secret,
      [memberVariables.jobFile]: jobFile.path,
      [controllerVariable]: String(process.pid),
    },
    stdio: ["ignore", "ignore", "pipe"],
    detached: true, // Ctrl-C in the terminal must reach only the launcher, which lets the ranks save first
  });
  let report: ErrorReport | undefined;
  const words: string[] = [];
  const take = (line: string): void => {
    const at = line.indexOf(reportPrefix); // mpirun may print the rank number before the prefix
    if (at >= 0) report ??= JSON.parse(line.slice(at + reportPrefix.length)) as ErrorReport;
    else if (/\w/.test(line)) words.push(line.trim());
  };
  const stderr = child.stderr as Readable | undefined; // undefined if there are no free file handles
  if (stderr !== undefined) createInterface({ input: stderr }).on("line", take);
  // mpirun forwards SIGUSR2 to the ranks. The signal ends them, because ranks do not handle SIGUSR2.
  const processes = childProcesses([{ child, ranks: Array.from({ length: job.ranks }, (_, rank) => rank) }], "SIGUSR2");
  return {
    lost: processes.lost.then(async (loss) => {
      if (report !== undefined) return { ...loss, report };
      await new Promise((resolve) => setTimeout(resolve, identificationMilliseconds));
      return { ...loss, reason: `mpirun ended: ${words[0] ?? loss.reason}` };
    }),
    end: async (atOnce) => {
      await processes.end(atOnce);
      jobFile.remove();
    },
  };
};
