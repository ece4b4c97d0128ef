import { joinRendezvous, type JoinOptions, type Roster } from "@skein/collectives/node";
import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import type { Ending, ControllerMessage, MemberMessage } from "./control-messages.ts";
import type { Interruption } from "../processes/interruption.ts";
import type { Job } from "../job/job.ts";
import { describeError, RevokedError, RunError } from "../errors.ts";
import { nodeFiles } from "../files/files.ts";
import type { Assignment } from "../rank/messages.ts";
import { requireFolderOf } from "./require-folder.ts";
import { worldOf } from "./job-world.ts";
import type { MemberWorld, OpenMemberWorld } from "./member-world.ts";
import { patienceOf } from "./patience.ts";
import { prepare, type Prepared, withBackend } from "../preparation/prepare.ts";
import { measuringRank, RankThreads, type RankWork, trainingRank } from "./rank-threads.ts";
import { StopSignal } from "../rank/stop-signal.ts";

/** Making links takes milliseconds, unless somebody cannot be reached. */
const slowLinkMilliseconds = 3000;

/** Whom a process tries to reach. */
const linkingLine = ({ network: { timeoutSeconds } }: Job, ranks: readonly number[], roster: Roster): string => {
  const peers = roster.filter(({ rank }) => !ranks.includes(rank));
  const shown = peers.slice(0, 4).map(({ rank, host, port }) => `rank ${rank} at ${host}:${port}`);
  const more = peers.length > shown.length ? ` and ${peers.length - shown.length} more` : "";
  return `rank ${ranks.join(", ")}: still linking with ${shown.join(", ")}${more}; what is not reached within ${timeoutSeconds} s is named`;
};

export interface MemberOptions {
  /** As this process knows it; the controller must have the same. */
  readonly job: Job;
  /** The job with its data, where the process has loaded it already. */
  readonly prepared?: Prepared | undefined;
  /** Ranks that this process runs. */
  readonly ranks: readonly number[];
  readonly openWorld: OpenMemberWorld;
  /** Where the coordinator listens, and what proves that this process belongs to the job. */
  readonly rendezvous: (
    world: MemberWorld,
  ) => Promise<Pick<JoinOptions, "address" | "secret" | "security" | "insecure">>;
  /** Ranks of the controller of the run. Default: none, as a launcher has. */
  readonly controllerRanks?: readonly number[];
  /**
   * Calls back when this process is asked to end: before ranks have begun it does at once, later it asks the controller
   * to let the run save and stop.
   */
  readonly interruption?: Interruption;
  /** Give the part up, where ranks have not begun. */
  readonly signal?: AbortSignal;
  /** Told, in a line, for whom this process waits until ranks begin, where that takes more than a moment. */
  readonly onWaiting?: (line: string) => void;
}

/**
 * Take part in a run as one of its processes: join the rendezvous, run the ranks that the controller assigns work to,
 * and end when it says so.
 *
 * @returns how the run ended, as the controller sees it.
 * @throws what keeps this process from taking part: RunError `interrupted` or RendezvousError `rendezvous-stopped`
 * where it, or the run, was asked to end before ranks had begun. Failures of ranks are told to the controller, which
 * decides what follows.
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
  const left = new AbortController();
  interruption?.listen(() => left.abort(), { endsAtOnce: true });
  signal?.addEventListener("abort", () => left.abort());
  const build = await detectBuild();
  const module = await compileWasm(build);
  // Each thread with connections looks at the certificates' files; people are told once.
  const noted = new Set<string>();
  let tellNote: ((line: string) => void) | undefined;
  const onNote = (line: string): void => {
    if (noted.has(line)) return;
    noted.add(line);
    tellNote?.(line);
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
      signal: left.signal,
    });
    const tell = (message: MemberMessage): void => void member.send(message);
    tellNote = (text) => tell({ type: "rank", rank: ranks[0]!, message: { type: "remark", text } });
    for (const line of noted) tellNote(line);
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
          take: (rank, message) => tell({ type: "rank", rank, message }),
        });
      const linked = world.connect(member.roster);
      const slow = setTimeout(() => {
        const line = linkingLine(job, ranks, member.roster);
        onWaiting?.(line);
        tell({ type: "rank", rank: ranks[0]!, message: { type: "remark", text: line } });
      }, slowLinkMilliseconds);
      const reached = linked.then(
        () => true,
        () => false, // which ends this process, below
      );
      void reached.then(() => clearTimeout(slow));
      const ending = await new Promise<Ending>((resolve, reject) => {
        let stop: StopSignal | undefined;
        const leave = (): void => {
          if (interruption?.requested === true) tell({ type: "interrupt" });
          reject(
            new RunError(
              "interrupted",
              `rank ${ranks.join(", ")} was asked to end before ranks had begun; nothing was trained`,
            ),
          );
        };
        left.signal.addEventListener("abort", leave);
        if (left.signal.aborted) leave();
        linked.catch(reject);
        member.onLost(({ ranks: lost, reason, revoked }) => {
          const cutOff = revoked === true && ranks.some((rank) => lost.includes(rank));
          // The coordinator is gone with the controller, or hears this process no more: nobody is left to say "end".
          if (!cutOff && lost.length > 0 && !controllerRanks.some((rank) => lost.includes(rank))) return;
          if (revoked === true) return reject(new RevokedError(lost, reason));
          const who = lost.length === 0 ? "" : `rank ${lost.join(", ")} was lost, and `;
          reject(new RunError("process-lost", `${who}the controller of the run is gone: ${reason}`));
        });
        member.onMessage((message) => {
          const said = message as ControllerMessage;
          if (said.type === "assign") {
            const { assignment } = said;
            const signal = StopSignal.create(assignment.resume?.step ?? 0);
            stop = signal;
            Promise.all([workOf(assignment, signal), reached])
              .then(([work, areLinked]) => {
                if (over || !areLinked) return;
                left.signal.removeEventListener("abort", leave);
                interruption?.listen(() => tell({ type: "interrupt" }));
                threads = startRanks(work);
                tell({ type: "started" });
              })
              .catch((error: unknown) =>
                tell({ type: "rank", rank: ranks[0]!, message: { type: "failed", error: describeError(error) } }),
              );
          } else if (said.type === "stop") tell({ type: "begun", step: stop?.request() ?? 0 });
          else if (said.type === "stop-at") stop?.decide(said.step);
          else resolve(said.ending);
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
