import type { Worker } from "node:worker_threads";
import { describeError, type ErrorReport } from "@skein/cli/node";
import type { LossKind } from "@skein/collectives";
import { startThread, type WorldConnection } from "@skein/collectives/node";
import { boundPlans } from "@skein/step/node";
import type { BackendName } from "../backend/backend.ts";
import { blasOf } from "../backend/job-blas.ts";
import { threadsOf } from "../backend/job-threads.ts";
import type { Assignment, LinksRankInput, RankInput, RankMessage } from "../rank/messages.ts";
import type { Prepared } from "../preparation/prepared.ts";
import type { StopSignal } from "../rank/stop-signal.ts";
import { timeLimits } from "../processes/time-limits.ts";

/** Functions through which the rank threads of this process communicate with all ranks of the run. */
export interface LocalWorld {
  connection(rank: number): WorldConnection;
  /** Watches the thread of `rank`. If the thread ends with an error, collectives of all ranks fail immediately. */
  watch(rank: number, worker: Worker): void;
  /** Reports to all ranks that a rank is lost. */
  reportLost(rank: number, reason?: string, kind?: LossKind): void;
}

/** Entry file and input of the thread that runs a rank. */
export interface RankWork {
  readonly file: URL;
  readonly input: (connection: WorldConnection) => RankInput | LinksRankInput;
}

export interface RankThreadsInput extends RankWork {
  readonly world: LocalWorld;
  /** Ranks that this process runs. */
  readonly ranks: readonly number[];
  /** Receives messages of ranks. A thread that ends without a final message is reported as failed. Must not throw. */
  readonly take: (rank: number, message: RankMessage) => void;
}

/**
 * Returns the entry file and the input of a rank that trains.
 * @param file entry file of the thread.
 */
export const trainingRank = (
  assignment: Assignment,
  { data, dataDigest, traced, sampleKind, given, trainedHash, ownLeaves }: Prepared,
  module: WebAssembly.Module,
  stop: StopSignal,
  file: URL = new URL("../rank/rank.ts", import.meta.url),
): RankWork => {
  const backend = assignment.job.backend as BackendName; // the backend of an assignment is already resolved
  const blas = backend === "cpu" ? blasOf(assignment.job) : undefined; // read once for all ranks
  const input = (connection: WorldConnection): RankInput => ({
    ...assignment,
    backend,
    blas,
    threads: threadsOf(assignment.job),
    connection,
    module,
    data,
    dataDigest,
    traced,
    sampleKind,
    trainedHash,
    boundPlans: boundPlans(ownLeaves.keys()),
    recordings: given?.recordings,
    stop: stop.words.buffer as SharedArrayBuffer,
  });
  return { file, input };
};

/** Returns the entry file and the input of a rank that measures links. */
export const measuringRank = (module: WebAssembly.Module): RankWork => ({
  file: new URL("../links/links-rank.ts", import.meta.url),
  input: (connection) => ({ connection, module, messageBytes: linkMessageBytes }),
});

/** Message sizes in bytes at which links are measured, from an almost empty message to a gradient bucket. */
const linkMessageBytes: readonly number[] = [64, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

/**
 * Maximum size of V8's young generation in MiB. A step creates few objects, all short-lived. With V8's default, this
 * part of the heap grows to dozens of MiB per thread before a collection.
 */
const maxYoungGenerationSizeMb = 4;

const endedEarly = (code: number): ErrorReport => ({
  kind: "environment",
  code: "rank-failed",
  message: `its thread ended with code ${code} before the run did`,
  stack: "",
});

/** Threads of the ranks that one process runs. */
export class RankThreads {
  /** Settles when every rank has ended or failed. */
  readonly finished: Promise<void>;
  private readonly workers: Worker[] = [];

  constructor(input: RankThreadsInput) {
    this.finished = Promise.all(input.ranks.map((rank) => this.begin(rank, input))).then(() => undefined);
  }

  private begin(rank: number, { world, file, input, take }: RankThreadsInput): Promise<void> {
    const options = {
      workerData: input(world.connection(rank)),
      name: `rank ${rank}`,
      resourceLimits: { maxYoungGenerationSizeMb },
    };
    const worker = startThread(() => file, options, "skein-train");
    this.workers.push(worker);
    world.watch(rank, worker);
    return new Promise<void>((resolve) => {
      let over = false;
      const finish = (message: RankMessage): void => {
        if (over) return;
        over = true;
        // Makes all other ranks stop waiting for this rank.
        if (message.type === "failed") world.reportLost(rank, message.error.message.split("\n")[0]);
        take(rank, message);
        resolve();
      };
      worker.on("message", (message: RankMessage) => {
        if (message.type === "failed" || message.type === "done") finish(message);
        else if (!over) take(rank, message);
      });
      worker.once("error", (error) => finish({ type: "failed", error: describeError(error) }));
      worker.once("exit", (code) => finish({ type: "failed", error: endedEarly(code) }));
    });
  }

  /**
   * Waits for the ranks to end. Ranks end by themselves when they are done or a peer is reported lost. Terminating a
   * thread with an open WebGPU device would end the process, so only threads that hang are terminated.
   */
  async end(): Promise<void> {
    const ended = this.workers.map((worker) =>
      worker.threadId === -1 ? Promise.resolve() : new Promise<void>((resolve) => worker.once("exit", () => resolve())),
    );
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeLimits.threads);
    });
    await Promise.race([Promise.all(ended), timeout]);
    clearTimeout(timer);
    await Promise.all(this.workers.map((worker) => worker.terminate()));
  }
}
