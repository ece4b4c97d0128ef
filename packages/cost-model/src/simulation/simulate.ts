import { ArgumentError, type RankSpans } from "@skein/tensor-core";
import type { Contention } from "../hardware/hardware.ts";
import { checkWorld } from "./check-world.ts";
import { deadlockOf } from "./deadlock.ts";
import { type JitterOptions, jitterOf } from "./jitter.ts";
import type { PhaseTimes } from "./meeting.ts";
import { rankClasses } from "./rank-classes.ts";
import { spansOfRank } from "./rank-spans.ts";
import type { SimulatedWorld } from "./task.ts";
import { WorldRun } from "./world-run.ts";

export interface SimulationOptions {
  /** Steps in a row, without a barrier between them. Default: 1. */
  readonly steps?: number;
  /** How many collectives of one lane a group, and a rank's stream, may have under way at once. Default: 1. */
  readonly concurrent?: number;
  /** What transfers at once on one link cost each other beside sharing it. Default: nothing. */
  readonly contention?: Contention;
  /** What a message takes longer while a member of its group computes. Default: 0. */
  readonly messageDelaySeconds?: number;
  /** How times scatter. Default: not at all. */
  readonly jitter?: JitterOptions;
  /** Simulate every rank, also where several are alike. Default: false. */
  readonly everyRank?: boolean;
  /** Make spans; without, `ranks` is empty. Default: true. */
  readonly spans?: boolean;
}

/** A collective on the network, of one group of those that are alike. */
export interface SimulatedCollective {
  readonly name: string;
  readonly axis: string;
  readonly ranks: readonly number[];
  /** Groups that do the same at the same times, this one included. */
  readonly numGroups: number;
  readonly step: number;
  /** When the last member had started it. */
  readonly readySeconds: number;
  readonly phases: readonly Readonly<PhaseTimes>[];
  readonly endSeconds: number;
}

/** Steps as the simulator has them. Times count from the begin of the first step. */
export interface SimulatedStep {
  /** By rank, in the format of a run's; all steps. Ranks that are alike may share one list. */
  readonly ranks: readonly RankSpans[];
  /**
   * Of the last step: from the end of the step before to its own. With several steps that is the steady state, if there
   * is one.
   */
  readonly stepSeconds: number;
  /** By rank: what it waits for collectives in the last step. */
  readonly exposedSeconds: readonly number[];
  /** By step, then by rank: the same of each step. */
  readonly exposedOfSteps: readonly (readonly number[])[];
  /** By step: when the last rank's compute stream is through. What nobody waits for may go on into the next step. */
  readonly endSeconds: readonly number[];
  readonly collectives: readonly SimulatedCollective[];
  /**
   * How many ranks were simulated, one for each class of ranks that cannot but do the same, and for how many they
   * stand.
   */
  readonly symmetry: { readonly classes: number; readonly ranks: number };
  readonly numEvents: number;
}

const checkCount = (name: string, value: number): void => {
  if (!(Number.isSafeInteger(value) && value >= 1))
    throw new ArgumentError(`simulate: ${name} ${value} was given; use a whole number from 1`);
};

/**
 * Simulate training steps of many ranks.
 *
 * A rank computes one task at a time, in the order of its program. A collective begins when the last member has started
 * it, and what its members' programs start before it on the same stream and in the same lane is done; the collectives
 * of a group and lane run one after the other (`concurrent`: so many at once). Its phases follow one another, each
 * after start-up + slowdown · transfer. While k transfers are on one link,
 *
 *     slowdown = 1 + (k − 1)(1 + η / b),   k of the most loaded link: T_k = a + k · b · M + (k − 1) · η · M
 *
 * and is worked out anew whenever k changes; what was sent stays sent. Inter-node phases of groups that have ranks on
 * one host share that host's link; intra-node phases share the links of a rank only with others of that rank (lanes,
 * `concurrent`). A group's own ranks on a host count as one transfer: its price knows of them already.
 *
 * Messages of a phase that begins while a member computes take `messageDelaySeconds` longer, each, for as long as that
 * member is known to compute.
 *
 * Not modelled: what ranks of one host cost each other within the host (memory bandwidth, caches, cores), switches and
 * racks above the hosts, computation that communication slows (kernels of `stepTasks` hold an estimate of it), the
 * network's preference for the higher of two lanes, that a rank carries out the collectives of one lane one after the
 * other whatever links they go over, and memory. A rank's streams serve collectives in the order of its
 * program, so one that waits for its members holds up those behind it, as in a run.
 *
 * Ranks that cannot but do the same are simulated once (`rankClasses`); the result is that of all ranks, bit for bit.
 *
 * With one at a time per link (`concurrent` 1, one lane, no two groups on a host's link) no time that becomes longer
 * makes the step shorter. Where transfers share a link it may: one that comes later leaves the link to another.
 *
 * Cost: O(tasks of all classes) + O(log(events) · collectives · members). 10,000 like ranks of 1,000 tasks take a
 * fraction of a second.
 *
 * @throws ArgumentError for a world with impossible figures, one whose members of a group have different collectives,
 * or ranks that wait for each other in a circle; it names rank and collective.
 *
 * Source: Shi et al. 2018, arXiv 1805.03812 (S-SGD as a DAG); Wang et al. 2020, arXiv 2002.10105 (contention).
 */
export const simulate = (world: SimulatedWorld, options: SimulationOptions = {}): SimulatedStep => {
  const { steps = 1, concurrent = 1, messageDelaySeconds = 0, everyRank = false, spans = true } = options;
  const { penaltyPerFlow } = options.contention ?? { penaltyPerFlow: 0 };
  checkCount("steps", steps);
  checkCount("concurrent", concurrent);
  if (!(penaltyPerFlow >= -1 && Number.isFinite(penaltyPerFlow)))
    throw new ArgumentError(
      `simulate: a penaltyPerFlow of ${penaltyPerFlow} was given; use −1 (links that nobody shares) or more`,
    );
  if (!(messageDelaySeconds >= 0 && Number.isFinite(messageDelaySeconds)))
    throw new ArgumentError(
      `simulate: a messageDelaySeconds of ${messageDelaySeconds} was given; it is finite and not negative`,
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
  if (!run.run()) throw deadlockOf(run);
  const endSeconds = Array.from({ length: steps }, (_, step) =>
    run.ranks.reduce((latest, { ends }) => Math.max(latest, ends[step]!), 0),
  );
  if (!Number.isFinite(endSeconds[steps - 1]!))
    throw new ArgumentError(
      `simulate: ${steps} steps end after ${endSeconds[steps - 1]!} s; times must add up to a finite number`,
    );
  const { classOf } = classes;
  const exposedOfSteps = Array.from({ length: steps }, (_, step) =>
    classOf.map((index) => run.ranks[index]!.exposed[step]!),
  );
  return {
    ranks: spans ? spansOfRank(world.programs, classOf, run, steps) : [],
    stepSeconds: endSeconds[steps - 1]! - (endSeconds[steps - 2] ?? 0),
    exposedSeconds: exposedOfSteps[steps - 1]!,
    exposedOfSteps,
    endSeconds,
    collectives: run.meetings.map(({ task, group, step, readySeconds, phases, endSeconds: end }) => ({
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
