import { setTimeout as pause } from "node:timers/promises";
import { describeError, type ErrorReport, RevokedError, RunError } from "@skein/cli/node";
import { type Coordinator, hostRendezvous, randomSecret, type RendezvousOptions } from "@skein/collectives/node";
import type { ControllerMessage, Ending, MemberMessage } from "../members/control-messages.ts";
import { Failures } from "./failures.ts";
import { worldOf } from "../members/job-world.ts";
import { patienceOf } from "../members/patience.ts";
import type { Attempt, RankRunner } from "./rank-runner.ts";
import { StopRound } from "./stop-round.ts";
import { timeLimits } from "../processes/time-limits.ts";

/** A process that exited before the end of the run. */
export interface LostProcess {
  readonly ranks: readonly number[];
  /** Description of how the process ended. */
  readonly reason: string;
  /** Error reported by the process before it exited. Absent: the process reported no error. */
  readonly report?: ErrorReport;
}

/** Processes that run the ranks of a run. */
export interface Processes {
  /** Resolves with the first process that exits before the end of the run. */
  readonly lost: Promise<LostProcess>;
  /**
   * Waits until all processes have exited, and kills processes that do not exit in time.
   * @param atOnce whether to end the processes immediately, because they have nothing left to report or save.
   */
  end(atOnce: boolean): Promise<void>;
}

/** Starts the processes of a run. Does nothing if a launcher starts the processes. */
export type StartProcesses = (input: {
  readonly attempt: Attempt;
  readonly coordinator: Coordinator["address"];
  readonly secret: string;
}) => Promise<Processes>;

export interface ProcessRunnerOptions {
  readonly rendezvous?: Pick<RendezvousOptions, "host" | "port" | "security" | "insecure" | "ranks" | "notice">;
  readonly secret?: string;
  readonly start: StartProcesses;
}

/** Types of coordinator events that are shown to the user. */
const shownEvents: ReadonlySet<string> = new Set(["waiting", "silent", "refused", "dropped", "certificates"]);

const hostAt = async (options: RendezvousOptions): Promise<Coordinator> => {
  try {
    return await hostRendezvous(options);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new RunError(
      "port-in-use",
      `port ${options.port} of this machine is in use, so the coordinator cannot listen there; end processes left by an earlier start, or set another port in SKEIN_COORDINATOR, the same for all processes`,
      { cause: error },
    );
  }
};

/**
 * Returns a runner that runs ranks in processes which connect to a coordinator in this process. The processes are
 * started here, or by a launcher such as mpirun.
 */
export const processRunner = (options: ProcessRunnerOptions): RankRunner => ({
  run: async (attempt) => {
    const { assignment, record, interruption, note } = attempt;
    const { job } = assignment;
    const secret = options.secret ?? randomSecret();
    let lastShown: string | undefined; // a waiting process repeats its request, with the same event
    const coordinator = await hostAt({
      ...options.rendezvous,
      ...worldOf(job),
      ...patienceOf(job),
      secret,
      onEvent: ({ kind, message }) => {
        if (!shownEvents.has(kind) || message === lastShown) return;
        lastShown = message;
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
    // This timer keeps the process alive while the run waits for messages, because the coordinator's sockets do not.
    const alive = setInterval(() => undefined, 2 ** 30);
    let ended = false;
    let ending: Ending = "failed";
    try {
      coordinator.ready.catch(() => undefined); // rejections are reported by the awaits below
      processes = await options
        .start({ attempt, coordinator: coordinator.address, secret })
        .catch(async (error: unknown) => {
          await pause(timeLimits.ownSignal); // a signal to all processes may have interrupted a query of the launcher
          if (!interruption.requested) throw error;
          throw new RunError("interrupted", "stopped before all ranks were started; nothing was trained", {
            cause: error,
          });
        });
      void processes.lost.then(async ({ ranks, reason, report }) => {
        // A signal to all processes of the run may end recently started ranks before this process handles the signal.
        if (interruption.endsAtOnce && report === undefined) await pause(timeLimits.ownSignal);
        if (ended) return;
        // This failure is added first, because the coordinator will report immediately that not all processes have
        // joined.
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
        minStep: (assignment.resume?.step ?? 0) + 1,
        tell,
      });
      coordinator.onLost(({ ranks, reason, revoked }) => {
        if (revoked === true && !ended) return failures.addOwn(new RevokedError(ranks, reason));
        // Waits first, because the code that started the process can give a better reason: the exit code or signal.
        setTimeout(() => {
          if (!ended) failures.addOwn(new RunError("process-lost", `rank ${ranks.join(", ")}: ${reason}`));
        }, timeLimits.exitCode).unref();
      });
      coordinator.onMessage(({ process, message }) => {
        const memberMessage = message as MemberMessage;
        if (memberMessage.type === "started") {
          started.add(process);
          if (started.size === numProcesses) interruption.listen(() => stop.request());
          return;
        }
        if (memberMessage.type === "begun") return stop.answer(process, memberMessage.step);
        if (memberMessage.type === "interrupt") return interruption.request();
        record.take(memberMessage.rank, memberMessage.message, failures);
        if (memberMessage.message.type !== "done" && memberMessage.message.type !== "failed") return;
        if (memberMessage.message.type === "done") lastStep = memberMessage.message.step;
        finished.add(memberMessage.rank);
        if (finished.size === job.ranks) announceFinished();
      });
      interruption.listen(endAtOnce("all ranks were linked"), { endsAtOnce: true });
      tell({ type: "assign", assignment });
      await Promise.race([
        allFinished.then(() => (failures.all.length > 0 ? failures.first : undefined)),
        failures.first,
      ]);
      // If a stop was requested during the last step, the run is complete, and its processes must not be started again.
      ending = interruption.requested && lastStep < (attempt.prepared?.totalSteps ?? 0) ? "stopped" : "finished";
    } finally {
      ended = true;
      const stoppedAtOnce = interruption.requested && interruption.endsAtOnce;
      interruption.listen(undefined);
      interruption.onAbandoned(undefined);
      // Joined processes receive the reason; other processes cannot be reached.
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
