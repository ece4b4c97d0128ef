import { setTimeout as pause } from "node:timers/promises";
import { type Coordinator, hostRendezvous, newSecret, type RendezvousOptions } from "@skein/collectives/node";
import type { Ending, ControllerMessage, MemberMessage } from "../members/control-messages.ts";
import { describeError, type ErrorReport, RevokedError, RunError } from "../errors.ts";
import { Failures } from "./failures.ts";
import { worldOf } from "../members/job-world.ts";
import { patienceOf } from "../members/patience.ts";
import type { Attempt, RankRunner } from "./rank-runner.ts";
import { StopRound } from "./stop-round.ts";
import { timeLimits } from "../processes/time-limits.ts";

/** A process that ended before it was told to. */
export interface LostProcess {
  readonly ranks: readonly number[];
  /** How it ended. */
  readonly reason: string;
  /** What it said itself. */
  readonly report?: ErrorReport;
}

/** Processes that hold ranks of a run. */
export interface Processes {
  /** The first that ends before it was told to. */
  readonly lost: Promise<LostProcess>;
  /** See them to their end; those that stay are killed. @param atOnce they need not say or save anything more. */
  end(atOnce: boolean): Promise<void>;
}

/** Begins the processes of a run; those that others begin need none. */
export type StartProcesses = (place: {
  readonly attempt: Attempt;
  readonly coordinator: Coordinator["address"];
  readonly secret: string;
}) => Promise<Processes>;

export interface ProcessRunnerOptions {
  readonly rendezvous?: Pick<RendezvousOptions, "host" | "port" | "security" | "insecure" | "ranks" | "notice">;
  readonly secret?: string;
  readonly start: StartProcesses;
}

/** What happens at the coordinator that people should see. */
const told: ReadonlySet<string> = new Set(["waiting", "silent", "refused", "dropped", "certificates"]);

const hostAt = async (options: RendezvousOptions): Promise<Coordinator> => {
  try {
    return await hostRendezvous(options);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new RunError(
      "port-in-use",
      `port ${options.port} of this machine is in use, so the ranks cannot meet there; end what an earlier start has left, or name another in SKEIN_COORDINATOR, the same for all processes`,
      { cause: error },
    );
  }
};

/**
 * Runs the ranks of a job in processes that find each other at a coordinator of this process. They may be started here,
 * or by a launcher such as mpirun.
 */
export const processRunner = (options: ProcessRunnerOptions): RankRunner => ({
  run: async (attempt) => {
    const { assignment, record, interruption, note } = attempt;
    const { job } = assignment;
    const secret = options.secret ?? newSecret();
    let toldLast: string | undefined; // a process that waits for a place asks again and again, and is told the same
    const coordinator = await hostAt({
      ...options.rendezvous,
      ...worldOf(job),
      ...patienceOf(job),
      secret,
      onEvent: ({ kind, message }) => {
        if (!told.has(kind) || message === toldLast) return;
        toldLast = message;
        note(message);
      },
    });
    const failures = new Failures();
    interruption.onAbandoned((error) => failures.addOwn(error));
    const started = new Set<number>();
    const finished = new Set<number>();
    let joined = false;
    let lastStep = 0;
    let announceFinished!: () => void;
    const allFinished = new Promise<void>((resolve) => {
      announceFinished = resolve;
    });
    const tell = (message: ControllerMessage): void => coordinator.broadcast(message);
    let processes: Processes | undefined;
    // What a run waits for are messages of others, and their sockets do not keep a process alive.
    const alive = setInterval(() => undefined, 2 ** 30);
    let ended = false;
    let ending: Ending = "failed";
    try {
      coordinator.ready.catch(() => undefined); // whoever waits below tells
      processes = await options
        .start({ attempt, coordinator: coordinator.address, secret })
        .catch(async (error: unknown) => {
          await pause(timeLimits.ownSignal); // a signal to all may have ended what is asked about a launcher
          if (!interruption.requested) throw error;
          throw new RunError("interrupted", "stopped before all ranks were started; nothing was trained", {
            cause: error,
          });
        });
      void processes.lost.then(async ({ ranks, reason, report }) => {
        // A signal to all processes of the run may end ranks that have just been started before it is heard here.
        if (interruption.endsAtOnce && report === undefined) await pause(timeLimits.ownSignal);
        if (ended) return;
        // First, since the coordinator will say at once that not all have joined.
        if (report !== undefined) failures.add(ranks[0]!, report);
        else failures.addOwn(new RunError("process-lost", `rank ${ranks.join(", ")}: ${reason}`));
        for (const rank of ranks) coordinator.reportLost(rank, report?.message ?? reason);
      });
      const endAtOnce = (when: string) => (): void =>
        failures.addOwn(new RunError("interrupted", `stopped before ${when}; nothing was trained`));
      interruption.listen(endAtOnce("all ranks had joined"), { endsAtOnce: true });
      const roster = await Promise.race([coordinator.ready, failures.first]).catch((error: unknown) => {
        const { code, message } = describeError(error);
        throw code === "rendezvous-stopped" ? new RunError("interrupted", message, { cause: error }) : error;
      });
      joined = true;
      const numProcesses = new Set(roster.map((entry) => entry.process)).size;
      const stop = new StopRound({
        processes: numProcesses,
        leastStep: (assignment.resume?.step ?? 0) + 1,
        tell,
      });
      coordinator.onLost(({ ranks, reason, revoked }) => {
        if (revoked === true && !ended) return failures.addOwn(new RevokedError(ranks, reason));
        // Whoever started the process knows better how it ended.
        setTimeout(() => {
          if (!ended) failures.addOwn(new RunError("process-lost", `rank ${ranks.join(", ")}: ${reason}`));
        }, timeLimits.exitCode).unref();
      });
      coordinator.onMessage(({ process, message }) => {
        const said = message as MemberMessage;
        if (said.type === "started") {
          started.add(process);
          if (started.size === numProcesses) interruption.listen(() => stop.request());
          return;
        }
        if (said.type === "begun") return stop.answer(process, said.step);
        if (said.type === "interrupt") return interruption.request();
        record.take(said.rank, said.message, failures);
        if (said.message.type !== "done" && said.message.type !== "failed") return;
        if (said.message.type === "done") lastStep = said.message.step;
        finished.add(said.rank);
        if (finished.size === job.ranks) announceFinished();
      });
      interruption.listen(endAtOnce("all ranks were linked"), { endsAtOnce: true });
      tell({ type: "assign", assignment });
      await Promise.race([
        allFinished.then(() => (failures.all.length > 0 ? failures.first : undefined)),
        failures.first,
      ]);
      // A stop that was asked for during the last step came too late: the run is done, and its processes must not be
      // started again.
      ending = interruption.requested && lastStep < (attempt.prepared?.totalSteps ?? 0) ? "stopped" : "finished";
    } finally {
      ended = true;
      const stoppedAtOnce = interruption.requested && interruption.endsAtOnce;
      interruption.listen(undefined);
      interruption.onAbandoned(undefined);
      // Who has joined learns why the others will not; who has not is told by nobody.
      if (joined) tell({ type: "end", ending: stoppedAtOnce ? "stopped" : ending });
      const closed = joined
        ? undefined
        : coordinator.close(interruption.requested ? "the controller of the run was asked to end" : undefined);
      await Promise.all([closed, processes?.end(ending === "failed" && started.size === 0)]);
      for (const { error } of failures.echoes) note(error.message.split("\n")[0]!);
      await coordinator.close();
      clearInterval(alive);
    }
  },
});
