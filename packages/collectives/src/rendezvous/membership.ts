import type { JoinRequest, Refusal } from "./handshake-messages.ts";
import { formatRanks } from "../ranks.ts";
import type { Roster } from "./roster.ts";

/** Settings that must be equal on all processes of a world. */
export interface World {
  readonly worldSize: number;
  /** Build of Skein; undefined if any build may join. */
  readonly build: string | undefined;
  /** Advice to the user if a process has another build. */
  readonly buildCure?: string | undefined;
}

const short = (hash: string): string => (hash.length > 16 ? `${hash.slice(0, 16)}…` : hash);

/** Returns the refusal for a process of another job. */
export const otherJob = (own: string, theirs: string): Refusal => ({
  code: "join-job",
  message: `this process runs job ${short(theirs)}, the coordinator job ${short(own)}; start every process with the same job file and options`,
});

const defaultBuildCure =
  "install the same build on all hosts, or allow other builds where results need not be the same bits";

/** Returns the reason why a join request does not match the world; undefined if the request matches. */
export const mismatch = (
  { worldSize, build, buildCure = defaultBuildCure }: World,
  request: JoinRequest,
): Refusal | undefined => {
  if (build !== undefined && request.build !== build)
    return {
      code: "join-build",
      message: `this process is of build ${request.build}, the coordinator of ${build}; ${buildCure}`,
    };
  if (request.worldSize !== worldSize)
    return {
      code: "join-world-size",
      message: `this process expects ${request.worldSize} ranks, the coordinator ${worldSize}; start every process with the same --ranks`,
    };
  return undefined;
};

/**
 * Assignment of ranks to processes. Pure bookkeeping, without sockets or clocks.
 *
 * `Process` is the caller's type for a process.
 */
export class Membership<Process> {
  readonly #world: World;
  readonly #joined = new Map<number, { readonly process: Process; readonly request: JoinRequest }>();
  readonly #left = new Map<number, string>();

  constructor(world: World) {
    this.#world = world;
  }

  get complete(): boolean {
    return this.#joined.size === this.#world.worldSize;
  }

  /** Ranks without a process, in ascending order. */
  get missing(): number[] {
    return Array.from({ length: this.#world.worldSize }, (_, rank) => rank).filter((rank) => !this.#joined.has(rank));
  }

  /**
   * Assigns all requested ranks to `process`. If one of the ranks cannot be assigned, assigns no rank and returns the
   * refusal.
   */
  admit(process: Process, request: JoinRequest): Refusal | undefined {
    const refusal = mismatch(this.#world, request) ?? this.#refuse(request);
    if (refusal === undefined) for (const rank of request.ranks) this.#joined.set(rank, { process, request });
    return refusal;
  }

  #refuse({ ranks }: JoinRequest): Refusal | undefined {
    const { worldSize } = this.#world;
    const outside = ranks.filter((rank) => rank >= worldSize);
    if (outside.length > 0)
      return {
        code: "join-rank",
        message: `${formatRanks(outside)} cannot join a world of ${worldSize}; ranks are 0 to ${worldSize - 1}, so check the option or variable that sets the rank of the process`,
      };
    if (new Set(ranks).size < ranks.length)
      return {
        code: "join-rank",
        message: `a process joins with ranks ${ranks.join(", ")}, and one rank is given twice; give each thread a rank of its own`,
      };
    const taken = ranks.filter((rank) => this.#joined.has(rank));
    if (this.complete)
      return {
        code: "join-late",
        message: `${formatRanks(ranks)} joined after all ${worldSize} ranks had joined; a lost rank can rejoin when the whole job restarts`,
      };
    if (taken.length > 0) {
      const holders = [...new Set(taken.map((rank) => this.#joined.get(rank)!.request.hostName))];
      return {
        code: "join-rank-taken",
        message: `${formatRanks(taken)} already joined from ${holders.join(", ")}; give each process ranks of its own, and end processes of an earlier start`,
      };
    }
    return undefined;
  }

  /** Removes a process from its ranks before the world is complete. Returns the ranks of the process. */
  leave(process: Process, reason: string): number[] {
    const ranks = this.ranksOf(process);
    for (const rank of ranks) {
      this.#joined.delete(rank);
      this.#left.set(rank, reason);
    }
    return ranks;
  }

  ranksOf(process: Process): number[] {
    return [...this.#joined]
      .filter(([, place]) => place.process === process)
      .map(([rank]) => rank)
      .sort((a, b) => a - b);
  }

  /**
   * Returns the processes in the order of their lowest rank. The index of a process in this list is its number in the
   * roster.
   */
  processes(): Process[] {
    const ordered = [...this.#joined].sort(([a], [b]) => a - b).map(([, { process }]) => process);
    return [...new Set(ordered)];
  }

  /** Returns the roster of a complete world. */
  roster(): Roster {
    const numbers = new Map(this.processes().map((process, number) => [process, number]));
    return Array.from({ length: this.#world.worldSize }, (_, rank) => {
      const { process, request } = this.#joined.get(rank)!;
      return {
        rank,
        ...request.addresses[request.ranks.indexOf(rank)]!,
        hostName: request.hostName,
        process: numbers.get(process)!,
      };
    });
  }

  /** Returns text for a message: the missing ranks, then `verb`, then the reasons why ranks have left after joining. */
  nameMissing(verb: string, missing: readonly number[] = this.missing): string {
    const gone = missing
      .filter((rank) => this.#left.has(rank))
      .map((rank) => `rank ${rank} had joined, but ${this.#left.get(rank)}`);
    const remarks = gone.length === 0 ? "" : ` (${gone.slice(0, 8).join("; ")}${gone.length > 8 ? "; …" : ""})`;
    return `${formatRanks(missing)} of ${this.#world.worldSize} ${verb}${remarks}`;
  }

  /** Describes why the world is not complete after `timeoutMilliseconds`. */
  describeMissing(timeoutMilliseconds: number): string {
    return `${this.nameMissing(`did not join within ${timeoutMilliseconds / 1000} s`)}; check the output of those processes, or raise joinTimeoutMilliseconds (network.joinSeconds of a job) if they only start slowly`;
  }
}
