import { ArgumentError, type RankSpans } from "@skein/tensor-core";
import type { Contention } from "../hardware/hardware.ts";
import { checkWorld } from "./check-world.ts";
import { deadlockError } from "./deadlock.ts";
import { type JitterOptions, jitterOf } from "./jitter.ts";
import type { PhaseTimes } from "./collective-instance.ts";
import { rankClasses } from "./rank-classes.ts";
import { spansOfRank } from "./rank-spans.ts";
import type { SimulatedWorld } from "./task.ts";
import { WorldRun } from "./world-run.ts";

export interface SimulationOptions {
  /** Number of consecutive steps to simulate, without a barrier between steps. Default: 1. */
  readonly steps?: number;
  /**
   * Maximum number of concurrent collectives of equal priority (one lane), in a group and on a rank's stream. Default:
   * 1.
   */
  readonly concurrent?: number;
  /** Additional slowdown of concurrent transfers on one link, beyond sharing the link's bandwidth. Default: none. */
  readonly contention?: Contention;
  /** Extra seconds per message while a member of the group computes. Default: 0. */
  readonly messageDelaySeconds?: number;
  /** Random variation of times. Absent: times do not vary. */
  readonly jitter?: JitterOptions;
  /** Whether to simulate every rank separately, even if ranks are equivalent. Default: false. */
  readonly everyRank?: boolean;
  /** Whether to build spans. If false, `ranks` of the result is empty. Default: true. */
  readonly spans?: boolean;
}

/** A simulated collective of one group that represents all equivalent groups. */
export interface SimulatedCollective {
  readonly name: string;
  readonly axis: string;
  readonly ranks: readonly number[];
  /** Number of equivalent groups, including this group. */
  readonly numGroups: number;
  readonly step: number;
  /** Time when the last member started the collective, in seconds. */
  readonly readySeconds: number;
  readonly phases: readonly Readonly<PhaseTimes>[];
  readonly endSeconds: number;
}

/** Result of a simulation of one or more steps. Times count from the start of the first step. */
export interface SimulatedStep {
  /**
   * Spans of each rank over all steps, in the same format as the spans of a real run. Equivalent ranks may share one
   * list.
   */
  readonly ranks: readonly RankSpans[];
  /**
   * Seconds of the last step, counted from the end of the previous step. With several steps, this is the step time in
   * the steady state, if there is a steady state.
   */
  readonly stepSeconds: number;
  /** Seconds that each rank waits for collectives in the last step, by rank. */
  readonly exposedSeconds: readonly number[];
  /** Seconds that each rank waits for collectives in each step, by step, then by rank. */
  readonly exposedByStep: readonly (readonly number[])[];
  /**
   * Time when the last rank's compute stream ends, by step. Collectives without a wait may continue into the next step.
   */
  readonly endSeconds: readonly number[];
  readonly collectives: readonly SimulatedCollective[];
  /** Number of simulated ranks, one per class of equivalent ranks, and total number of ranks. */
  readonly symmetry: { readonly classes: number; readonly ranks: number };
  readonly numEvents: number;
}

const checkCount = (name: string, value: number): void => {
  if (!(Number.isSafeInteger(value) && value >= 1))
    throw new ArgumentError(`simulate: ${name} is ${value}, but must be a whole number from 1; correct ${name}`);
};

/**
 * Simulates training steps of many ranks.
 *
 * A rank computes one task at a time, in the order of its program. A lane contains the collectives of equal priority. A
 * collective begins when all members have started it, and all earlier collectives of its members on the same stream and
 * lane are done. The collectives of a group and lane run one after another, or `concurrent` at a time. The phases of a
 * collective run in sequence. Each phase takes start-up + slowdown · transfer. With k concurrent transfers on the
 * phase's most loaded link,
 *
 *     slowdown = 1 + (k − 1)(1 + η / b),   so T_k = a + k · b · M + (k − 1) · η · M
 *
 * When k changes, the slowdown of the remaining transfer changes. Inter-node phases of groups with ranks on the same
 * host share the host's link. Intra-node phases share a rank's links only with other collectives of this rank (lanes,
 * `concurrent`). The ranks of one group on a host count as one transfer, because the group's price already includes all
 * of them.
 *
 * If a phase begins while a member computes, each message of the phase takes `messageDelaySeconds` longer while the
 * member is known to compute.
 *
 * Not modeled: interference between ranks on one host (memory bandwidth, caches, cores); switches and racks;
 * computation slowed by communication (kernels of `stepTasks` include an estimate); the network's preference for the
 * higher lane; that a rank runs the collectives of one lane one after another even on different links; memory. A rank's
 * streams run collectives in program order. So a collective that waits for its members blocks later collectives on the
 * stream, as in a real run.
 *
 * Equivalent ranks are simulated once (`rankClasses`); the result is bitwise equal to a simulation of all ranks.
 *
 * With one collective at a time per link (`concurrent` 1, one lane, no two groups on a host's link), increasing any
 * time never makes the step shorter. With shared links, a longer time may make the step shorter, because a later
 * transfer leaves more bandwidth to other transfers.
 *
 * Cost: O(tasks of all classes) + O(log(events) · collectives · members). 10,000 equivalent ranks with 1,000 tasks take
 * a fraction of a second.
 *
 * @throws ArgumentError that names rank and collective, if the world has impossible values, different collectives on
 * the members of a group, or a deadlock.
 *
 * @example
 * ```ts
 * const compute = (name: string, seconds: number) => ({ kind: "compute", name, seconds }) as const;
 * const programs = [[compute("forward", 1), compute("backward", 2)]];
 * console.log(simulate({ programs, groups: {} }).stepSeconds); // 3
 * ```
 * Source: Shi et al. 2018, arXiv 1805.03812 (S-SGD as a DAG); Wang et al. 2020, arXiv 2002.10105 (contention).
 */
export const simulate = (world: SimulatedWorld, options: SimulationOptions = {}): SimulatedStep => {
  const { steps = 1, concurrent = 1, messageDelaySeconds = 0, everyRank = false, spans = true } = options;
  const { penaltyPerFlow } = options.contention ?? { penaltyPerFlow: 0 };
  checkCount("steps", steps);
  checkCount("concurrent", concurrent);
  if (!(penaltyPerFlow >= -1 && Number.isFinite(penaltyPerFlow)))
    throw new ArgumentError(
      `simulate: penaltyPerFlow is ${penaltyPerFlow}, but must be finite and −1 or more; use −1 for links without contention`,
    );
  if (!(messageDelaySeconds >= 0 && Number.isFinite(messageDelaySeconds)))
    throw new ArgumentError(
      `simulate: messageDelaySeconds is ${messageDelaySeconds}, but must be finite and not negative; use 0 for no delay`,
    );
  checkWorld(world);
  const jitter = options.jitter && jitterOf(options.jitter);
  const marks = world.programs.map((_, rank) => {
    if (everyRank || jitter?.sameOnRanks === false) return rank;
    return jitter?.rankFactor(rank) ?? 0;
  });
  const classes = rankClasses(world, marks);
  const run = new WorldRun(world.programs, classes, {
    steps,
    concurrent,
    penaltyPerFlow,
    messageDelaySeconds,
    jitter,
    keepTimes: spans,
  });
  if (!run.run()) throw deadlockError(run);
  const endSeconds = Array.from({ length: steps }, (_, step) =>
    run.ranks.reduce((latest, { ends }) => Math.max(latest, ends[step]!), 0),
  );
  if (!Number.isFinite(endSeconds[steps - 1]!))
    throw new ArgumentError(
      `simulate: ${steps} steps end after ${endSeconds[steps - 1]!} s, but times must add up to a finite number; use smaller times`,
    );
  const { classOf } = classes;
  const exposedByStep = Array.from({ length: steps }, (_, step) =>
    classOf.map((index) => run.ranks[index]!.exposed[step]!),
  );
  return {
    ranks: spans ? spansOfRank(world.programs, classOf, run, steps) : [],
    stepSeconds: endSeconds[steps - 1]! - (endSeconds[steps - 2] ?? 0),
    exposedSeconds: exposedByStep[steps - 1]!,
    exposedByStep,
    endSeconds,
    collectives: run.instances.map(({ task, group, step, readySeconds, phases, endSeconds: end }) => ({
      name: task.name,
      axis: group.axis,
      ranks: group.ranks,
      numGroups: group.numGroups,
      step,
      readySeconds,
      phases,
      endSeconds: end!,
    })),
    symmetry: { classes: classes.ranks.length, ranks: classOf.length },
    numEvents: run.numEvents,
  };
};
