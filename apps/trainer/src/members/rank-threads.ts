import type { Worker } from "node:worker_threads";
import type { LossKind } from "@skein/collectives";
import { startThread, type WorldConnection } from "@skein/collectives/node";
import type { BackendName } from "../backend/backend.ts";
import { describeError, type ErrorReport } from "../errors.ts";
import { blasOf } from "../backend/job-blas.ts";
import { threadsOf } from "../backend/job-threads.ts";
import type { Assignment, LinksRankInput, RankInput, RankMessage } from "../rank/messages.ts";
import type { Prepared } from "../preparation/prepare.ts";
import { boundPlans } from "../plans/kept-plan.ts";
import type { StopSignal } from "../rank/stop-signal.ts";
import { timeLimits } from "../processes/time-limits.ts";

/** What ranks of this process need of the world that they are in. */
export interface LocalWorld {
  connection(rank: number): WorldConnection;
  /** Fail the group at once when the thread of `rank` ends with an error. */
  watch(rank: number, worker: Worker): void;
  /** Tell everyone that a rank is gone. */
  reportLost(rank: number, reason?: string, kind?: LossKind): void;
}

/** What the thread of a rank does: its file, and what it is started with. */
export interface RankWork {
  readonly file: URL;
  readonly input: (connection: WorldConnection) => RankInput | LinksRankInput;
}

export interface RankThreadsInput extends RankWork {
  readonly world: LocalWorld;
  /** Ranks that this process runs. */
  readonly ranks: readonly number[];
  /** Takes what ranks say. A thread that ends without a word is reported as failed. Must not throw. */
  readonly take: (rank: number, message: RankMessage) => void;
}

/** The thread of a rank that trains. @param file its entry. */
export const trainingRank = (
  assignment: Assignment,
  { data, dataDigest, traced, sampleKind, given, trainedHash, ownLeaves }: Prepared,
  module: WebAssembly.Module,
  stop: StopSignal,
  file: URL = new URL("../rank/rank.ts", import.meta.url),
): RankWork => {
  const backend = assignment.job.backend as BackendName; // a job is assigned with its backend settled
  const blas = backend === "cpu" ? blasOf(assignment.job) : undefined; // once for all ranks: it reads the addon's sources
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

/** The thread of a rank that measures links. */
export const measuringRank = (module: WebAssembly.Module): RankWork => ({
  file: new URL("../links/links-rank.ts", import.meta.url),
  input: (connection) => ({ connection, module, messageBytes: linkMessageBytes }),
});

/** From an empty message's time to that of a bucket: the sizes that a line is laid through. */
const linkMessageBytes: readonly number[] = [64, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

/**
 * A step leaves little behind, and all of it short-lived. V8's default lets this part of the heap grow to dozens of MiB
 * per thread before it looks.
 */
const maxYoungGenerationSizeMb = 4;

const endedEarly = (code: number): ErrorReport => ({
  kind: "environment",
  code: "rank-failed",
  message: `its thread ended with code ${code} before the run did`,
  stack: "",
});

/** The threads of the ranks that one process runs. */
export class RankThreads {
  /** Settles when every rank is done or has failed. */
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
        // the others stop waiting for it
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
   * See ranks out. They end by themselves once they are done or a peer is reported lost; a thread that is torn from an
   * open WebGPU device takes the process with it, so only those that hang are ended by force.
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
