import { randomUUID } from "node:crypto";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { exitCodes } from "@skein/cli/node";
import { writeCertificates } from "@skein/launch/node";
import {
  checkpointBytes,
  freePort,
  jobFolder,
  type Running,
  skeinTrain,
  startRank,
  startWith,
  stepLosses,
} from "../cli.ts";
import { markOf, processesOf } from "./run-processes.ts";

/** Number of steps of the test job that `jobFolder` creates. */
export const totalSteps = 30;

/** A reference run without an attack. */
export interface SoundRun {
  /** Copies the job file of the run into `folder`. */
  copyJob(folder: string): void;
  /**
   * Compares the end of the run in `output` with this run, bit by bit.
   * @returns a description of the difference, or undefined.
   */
  harmTo(output: string): Promise<string | undefined>;
  remove(): void;
}

/** Makes the reference run for any number of attacks. The run is started when it is first needed. */
export const soundRun = (): SoundRun => {
  const { folder, remove } = jobFolder();
  const bitsOf = (output: string): string => JSON.stringify([stepLosses(output), checkpointBytes(output, totalSteps)]);
  let bits: Promise<string> | undefined;
  const run = async (): Promise<string> => {
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", "sound");
    if (code !== 0) throw new Error(`the run without an attack fails: ${stderr}`);
    return bitsOf(join(folder, "sound"));
  };
  return {
    copyJob: (to) => copyFileSync(join(folder, "job.yaml"), join(to, "job.yaml")),
    harmTo: async (output) => {
      const expected = await (bits ??= run());
      try {
        return expected === bitsOf(output) ? undefined : "other bits";
      } catch (error) {
        return `an end that cannot be read: ${(error as Error).message}`;
      }
    },
    remove,
  };
};

/** Returns the number of steps recorded by the run in `output`. */
export const stepsDone = (output: string): number => {
  try {
    return existsSync(join(output, "metrics.jsonl")) ? stepLosses(output).length : 0;
  } catch {
    return 0; // the last line is still being written
  }
};

export type Transport = "tcp" | "tls";

export interface AttackedRunOptions {
  readonly folder: string;
  readonly transport: Transport;
  /** Values of `network` in the job that replace `networkSettings`. */
  readonly network?: Readonly<Record<string, string | number>>;
  /** Environment variables of the processes of the run. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Network settings of attacked runs. Links are slow, to leave time for an attack, and timeouts are short, so that the
 * run ends soon.
 */
export const networkSettings: Readonly<Record<string, string | number>> = {
  emulate: "{bytesPerSecond: 100000000, latencySeconds: 0.01}",
  joinSeconds: 20,
  silenceSeconds: 5,
  timeoutSeconds: 8,
};

/** Result of an attacked run. */
export interface Ending {
  /** Whether ranks were restarted, or the run resumed by itself from a checkpoint. */
  readonly restarted: boolean;
  /** Description of the damage. Absent: no damage. */
  readonly harm?: string | undefined;
}

/** Milliseconds after which a run counts as hanging. All timeouts of a run without peers are shorter. */
const longestMilliseconds = 90_000;
/** Delay in milliseconds before a rank is restarted, as with a launcher. */
const noticeMilliseconds = 1500;
const maxRestarts = 8;
const worthAnother = (code: number): boolean =>
  code === exitCodes.ok || code === exitCodes.failure || code === exitCodes.temporary;

/** A run of two ranks, supervised as by a launcher. */
export class AttackedRun {
  /** Latest processes of the run: one per rank, or the one process that starts the ranks. */
  readonly processes: Running[] = [];
  readonly output: string;
  readonly #options: AttackedRunOptions;
  readonly #name: string;
  readonly #id: string = randomUUID();
  readonly #args: readonly string[];
  #port = 0;
  #numStarts = 0;

  /** @param name Name of the output folder. */
  constructor(name: string, options: AttackedRunOptions) {
    const { folder, transport, network = {} } = options;
    this.#options = options;
    this.#name = name;
    this.output = join(folder, name);
    const sets = Object.entries({ ...networkSettings, ...network }).flatMap(([key, value]) => [
      "--set",
      `network.${key}=${value}`,
    ]);
    this.#args = ["--transport", transport, "--output", name, ...sets];
  }

  /** Port at which rank 0 hosts the rendezvous, if ranks are started separately. */
  get port(): number {
    return this.#port;
  }

  get #env(): Readonly<Record<string, string>> {
    return { ...this.#options.env, ...markOf(this.#id) };
  }

  /** Starts one process, which starts its ranks itself. */
  start(): void {
    this.#numStarts++;
    this.processes[0] = startWith(
      { env: this.#env },
      this.#options.folder,
      "run",
      "job.yaml",
      ...this.#args,
      "--resume-if-possible",
    );
  }

  /** Starts `ranks` separately, each in its own process. */
  async startRanks(...ranks: readonly number[]): Promise<void> {
    const { folder, transport } = this.#options;
    if (this.#port === 0) {
      this.#port = await freePort();
      if (transport === "tls")
        await writeCertificates({ folder: join(folder, `${this.#name}-certificates`), ranks: 2, hosts: ["127.0.0.1"] });
    }
    this.#numStarts++;
    const certificates = transport === "tls" ? ["--certificates", `${this.#name}-certificates`] : [];
    for (const rank of ranks)
      this.processes[rank] = startRank({
        folder,
        port: this.#port,
        rank,
        args: [...this.#args, ...certificates],
        env: this.#env,
      });
  }

  /**
   * Supervises the run to its end, restarts each process whose exit code requests it, and compares the result with
   * `sound`.
   */
  async finish(sound: SoundRun): Promise<Ending> {
    const byHand = this.#port !== 0;
    const most = this.#numStarts + maxRestarts;
    let restarted = false;
    const fell = (what: string): Ending => ({ restarted, harm: `${what}; its output: ${this.#words()}` });
    for (;;) {
      if (!(await this.#someFailed())) return fell("hangs");
      const ended = this.processes.map(({ child }) => child.exitCode);
      if (this.processes.some(({ stderr }) => /^\s+at /m.test(stderr()))) return fell("a stack trace");
      restarted ||= this.processes.some(({ stderr }) => /\(restart \d+ of /.test(stderr()));
      if (ended.every((code) => code === exitCodes.ok)) {
        const orphans = this.#living();
        return orphans.length > 0
          ? fell(`leaves ${orphans.length} processes behind`)
          : { restarted, harm: await sound.harmTo(this.output) };
      }
      const hopeless = this.processes.find(
        ({ child: { exitCode, signalCode } }) => signalCode !== null || (exitCode !== null && !worthAnother(exitCode)),
      );
      if (hopeless !== undefined)
        return fell(`ends for good with ${hopeless.child.exitCode ?? hopeless.child.signalCode}`);
      if (this.#numStarts >= most) return fell("fails again and again");
      restarted = true;
      const over = ended.every((code) => code !== null);
      const again = ended.flatMap((code, process) =>
        over || (code !== null && code !== exitCodes.ok) ? [process] : [],
      );
      if (byHand) await this.startRanks(...again);
      else this.start();
    }
  }

  /** Kills the remaining processes. */
  kill(): void {
    for (const pid of this.#living()) process.kill(pid, "SIGKILL");
  }

  #living(): number[] {
    return processesOf(this.#id);
  }

  /**
   * Resolves to true when a process of the run has failed and the processes that detect the failure have ended, or when
   * all processes have ended. Resolves to false on timeout.
   */
  async #someFailed(): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), longestMilliseconds);
    });
    const all = Promise.all(this.processes.map(({ ended }) => ended));
    const failed = this.processes.map(async ({ ended }) => {
      if ((await ended).code === exitCodes.ok) await all;
      else await Promise.race([all, new Promise((resolve) => setTimeout(resolve, noticeMilliseconds))]);
      return true;
    });
    const inTime = await Promise.race([late, ...failed]);
    clearTimeout(timer);
    return inTime;
  }

  #words(): string {
    return this.processes.map((running) => running.stderr().trimEnd().split("\n").slice(-3).join(" | ")).join(" || ");
  }
}
