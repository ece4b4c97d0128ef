import { describeError, nodeFiles, RevokedError, RunError } from "@skein/cli/node";
import { joinRendezvous, type JoinOptions, type Roster } from "@skein/collectives/node";
import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import type { Job } from "@skein/job/node";
import type { Ending, ControllerMessage, MemberMessage } from "./control-messages.ts";
import type { Interruption } from "../processes/interruption.ts";
import type { Assignment } from "../rank/messages.ts";
import { requireFolderOf } from "./require-folder.ts";
import { worldOf } from "./job-world.ts";
import type { MemberWorld, OpenMemberWorld } from "./member-world.ts";
import { patienceOf } from "./patience.ts";
import { prepare, withBackend } from "../preparation/prepare.ts";
import type { Prepared } from "../preparation/prepared.ts";
import { measuringRank, RankThreads, type RankWork, trainingRank } from "./rank-threads.ts";
import { StopSignal } from "../rank/stop-signal.ts";

/** Milliseconds before slow links are reported. Opening links takes milliseconds unless a peer cannot be reached. */
const slowLinkMilliseconds = 3000;

/** Returns a line for the user that names the ranks to which this process is still connecting. */
const connectingLine = ({ network: { timeoutSeconds } }: Job, ranks: readonly number[], roster: Roster): string => {
  const peers = roster.filter(({ rank }) => !ranks.includes(rank));
  const shown = peers.slice(0, 4).map(({ rank, host, port }) => `rank ${rank} at ${host}:${port}`);
  const more = peers.length > shown.length ? ` and ${peers.length - shown.length} more` : "";
  return `rank ${ranks.join(", ")}: still connecting to ${shown.join(", ")}${more}; unreachable ranks are reported after ${timeoutSeconds} s`;
};

export interface MemberOptions {
  /** Job as loaded by this process. The controller must have the same job. */
  readonly job: Job;
  /** Prepared job with its data. Absent: the process has not loaded the data yet. */
  readonly prepared?: Prepared | undefined;
  /** Ranks that this process runs. */
  readonly ranks: readonly number[];
  readonly openWorld: OpenMemberWorld;
  /** Returns the coordinator's address, and the credentials of this process for the rendezvous. */
  readonly rendezvous: (
    world: MemberWorld,
  ) => Promise<Pick<JoinOptions, "address" | "secret" | "security" | "insecure">>;
  /**
   * Ranks in the process of the controller. Default: none, because a controller that starts processes runs no ranks.
   */
  readonly controllerRanks?: readonly number[];
  /**
   * Interruption of this process. Before ranks have started, an interruption ends the process immediately; later, the
   * process asks the controller to let the run save and stop.
   */
  readonly interruption?: Interruption;
  /** Signal that aborts the start before ranks have started. */
  readonly signal?: AbortSignal;
  /** Receives lines that name the peers for which this process waits, if the start takes longer than usual. */
  readonly onWaiting?: (line: string) => void;
}

/**
 * Runs one process of a job: joins the rendezvous, runs the ranks that the controller assigns, and ends when the
 * controller ends the run.
 *
 * @returns the ending of the run, as reported by the controller.
 * @throws the error that prevents this process from joining the run: RunError `interrupted` or RendezvousError
 * `rendezvous-stopped` if the process or the run was asked to end before ranks had started. Failures of ranks are
 * reported to the controller, which handles them.
 */
export const takePart = async ({
  job,
  ranks,
  openWorld,
  rendezvous,
  interruption,
  signal,
  onWaiting,
  controllerRanks = [],
  prepared,
}: MemberOptions): Promise<Ending> => {
  const leaving = new AbortController();
  interruption?.listen(() => leaving.abort(), { endsAtOnce: true });
  signal?.addEventListener("abort", () => leaving.abort());
  const build = await detectBuild();
  const module = await compileWasm(build);
  // Several threads check the certificate files and send the same notes; the user sees each note only once.
  const notedLines = new Set<string>();
  let sendNote: ((line: string) => void) | undefined;
  const onNote = (line: string): void => {
    if (notedLines.has(line)) return;
    notedLines.add(line);
    sendNote?.(line);
  };
  const world = await openWorld({ job, ranks, memory: createSharedMemory(), kernels: module, build, onNote });
  let threads: RankThreads | undefined;
  let over = false;
  const alive = setInterval(() => undefined, 2 ** 30); // the sockets of a member do not keep its process alive
  try {
    const { joinTimeoutMilliseconds } = patienceOf(job);
    const member = await joinRendezvous({
      ...(await rendezvous(world)),
      ...worldOf(job),
      joinTimeoutMilliseconds,
      ranks,
      addresses: world.addresses,
      onNote,
      ...(onWaiting && { onWaiting }),
      signal: leaving.signal,
    });
    const send = (message: MemberMessage): void => void member.send(message);
    sendNote = (text) => send({ type: "rank", rank: ranks[0]!, message: { type: "remark", text } });
    for (const line of notedLines) sendNote(line);
    try {
      member.onLost(({ ranks: lost, reason, revoked }) => {
        for (const rank of lost) world.reportLost(rank, reason, revoked === true ? "revoked" : "lost");
      });
      const workOf = async (assignment: Assignment, stop: StopSignal): Promise<RankWork> => {
        if (assignment.task !== "train") return measuringRank(module);
        const known = prepared ?? (await prepare(job));
        await requireFolderOf(nodeFiles, assignment, known, ranks);
        return trainingRank(assignment, withBackend(known, assignment.job.backend), module, stop);
      };
      const startRanks = (work: RankWork): RankThreads =>
        new RankThreads({
          ...work,
          world: {
            connection: (rank) => world.connection(rank),
            watch: (rank, worker) => world.watch(rank, worker),
            reportLost: (rank, reason = "it failed") => {
              member.reportLost(rank, reason);
              world.reportLost(rank, reason);
            },
          },
          ranks,
          take: (rank, message) => send({ type: "rank", rank, message }),
        });
      const linked = world.connect(member.roster);
      const slow = setTimeout(() => {
        const line = connectingLine(job, ranks, member.roster);
        onWaiting?.(line);
        send({ type: "rank", rank: ranks[0]!, message: { type: "remark", text: line } });
      }, slowLinkMilliseconds);
      const reached = linked.then(
        () => true,
        () => false, // a rejection of `linked` is handled below
      );
      void reached.then(() => clearTimeout(slow));
      const ending = await new Promise<Ending>((resolve, reject) => {
        let stop: StopSignal | undefined;
        const leave = (): void => {
          if (interruption?.requested === true) send({ type: "interrupt" });
          reject(
            new RunError(
              "interrupted",
              `rank ${ranks.join(", ")} was asked to end before ranks had begun; nothing was trained`,
            ),
          );
        };
        leaving.signal.addEventListener("abort", leave);
        if (leaving.signal.aborted) leave();
        linked.catch(reject);
        member.onLost(({ ranks: lost, reason, revoked }) => {
          const cutOff = revoked === true && ranks.some((rank) => lost.includes(rank));
          // No "end" message will arrive, because the coordinator ended with the controller, or lost the connection to
          // this process.
          if (!cutOff && lost.length > 0 && !controllerRanks.some((rank) => lost.includes(rank))) return;
          if (revoked === true) return reject(new RevokedError(lost, reason));
          const who = lost.length === 0 ? "" : `rank ${lost.join(", ")} was lost, and `;
          reject(new RunError("process-lost", `${who}the controller of the run has ended: ${reason}`));
        });
        member.onMessage((message) => {
          const command = message as ControllerMessage;
          if (command.type === "assign") {
            const { assignment } = command;
            const signal = StopSignal.create(assignment.resume?.step ?? 0);
            stop = signal;
            Promise.all([workOf(assignment, signal), reached])
              .then(([work, areLinked]) => {
                if (over || !areLinked) return;
                leaving.signal.removeEventListener("abort", leave);
                interruption?.listen(() => send({ type: "interrupt" }));
                threads = startRanks(work);
                send({ type: "started" });
              })
              .catch((error: unknown) =>
                send({ type: "rank", rank: ranks[0]!, message: { type: "failed", error: describeError(error) } }),
              );
          } else if (command.type === "stop") send({ type: "begun", step: stop?.request() ?? 0 });
          else if (command.type === "stop-at") stop?.decide(command.step);
          else resolve(command.ending);
        });
      }).finally(() => {
        over = true;
        clearTimeout(slow);
      });
      await threads?.end();
      return ending;
    } finally {
      await member.close();
    }
  } finally {
    await world.close();
    clearInterval(alive);
  }
};
