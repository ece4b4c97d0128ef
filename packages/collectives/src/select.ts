import { InvariantError } from "@skein/tensor-core";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import { binomialBroadcast } from "./algorithms/binomial-broadcast.ts";
import { directAllGather } from "./algorithms/direct-all-gather.ts";
import { directAllReduce } from "./algorithms/direct-all-reduce.ts";
import { directReduceScatter } from "./algorithms/direct-reduce-scatter.ts";
import { pairwiseAllToAll } from "./algorithms/pairwise-all-to-all.ts";
import { reduceScatterGatherReduce } from "./algorithms/reduce-scatter-gather-reduce.ts";
import { algorithms } from "./algorithms/table.ts";
import type { LinkCosts } from "./link-file.ts";
import type { Algorithm, CostPlace, Load } from "./schedule.ts";

/** What all choices in one group depend on; equal on all ranks, so all choose alike. */
export interface GroupSituation {
  readonly worldSize: number;
  /** Every rank can read every other one's memory. */
  readonly sharesMemory: boolean;
  /** Ranks by host. Default: every rank on a host of its own. */
  readonly hosts?: readonly (readonly number[])[];
  /** What messages and sums take. Default: `ethernetLinks`. */
  readonly link?: LinkCosts;
  /**
   * "rank": only algorithms that sum in rank order, so that a job has the same bits over every transport and with every
   * size of bucket. "any": all; right for integers, and where bits need not be those of another transport. Default:
   * "rank".
   */
  readonly order?: "rank" | "any";
}

/** What one choice depends on. */
export interface Situation extends GroupSituation {
  readonly kind: CollectiveKind;
  /** S of docs/algorithms.md. */
  readonly byteLength: number;
}

/** An algorithm, and how many segments its vector is to be cut into. */
export interface Choice {
  readonly algorithm: Algorithm;
  readonly segments: number;
}

/**
 * Links that nobody measured. Within a host, between processes: what `skein-train links` found on loopback in November
 * 2026, 76 to 121 µs and 1.8 to 2.2 GB/s. Across hosts: as much and a 10 Gbit/s Ethernet, 25 µs and 1.25 GB/s. Sums: 2
 * GB/s of summands, which have just come and lie beside operands that no cache holds; with that, vectors are cut where
 * cutting was seen to pay (docs/experiments.md).
 */
export const ethernetLinks: LinkCosts = {
  within: { secondsPerMessage: 75e-6, secondsPerByte: 1 / 2e9 },
  across: { secondsPerMessage: 100e-6, secondsPerByte: 1 / 1.25e9 },
  reduceSecondsPerByte: 1 / 2e9,
};

/** Seconds of a path in which every byte of S stands for `scale` bytes. */
const secondsOfPath = (
  { within: near, across: far, reducedBytes }: Load,
  scale: number,
  segments: number,
  link: LinkCosts,
): number => {
  const { within, across, reduceSecondsPerByte } = link;
  const messages =
    within.secondsPerMessage * near.messages +
    within.secondsPerByte * near.bytes * scale +
    across.secondsPerMessage * far.messages +
    across.secondsPerByte * far.bytes * scale;
  const sums = reduceSecondsPerByte * reducedBytes * scale;
  return Math.max(messages, sums) + Math.min(messages, sums) / segments;
};

/**
 * Seconds that an algorithm takes in the α–β–γ model: the path of its messages, then its sums; with s segments,
 * messages of one travel while another is summed, and only the shorter of the two is left over once.
 */
export const predictedSeconds = (algorithm: Pick<Algorithm, "cost">, place: CostPlace, link: LinkCosts): number =>
  secondsOfPath(algorithm.cost(place).path, 1, place.segments ?? 1, link);

// Each rank reads and writes every byte once, and a message is an address (docs/experiments.md has the all-reduce
// between threads).
const inSharedMemory: { readonly [K in CollectiveKind]?: Algorithm } = {
  "all-reduce": directAllReduce,
  "reduce-scatter": directReduceScatter,
  "all-gather": directAllGather,
  "all-to-all": pairwiseAllToAll,
  broadcast: binomialBroadcast,
  reduce: reduceScatterGatherReduce,
};

/**
 * Make what chooses an algorithm and a number of segments for the requests of one group. In shared memory every peer
 * can be read where it lies, so the direct forms win at every size. Over messages: whichever takes the least time in
 * the α–β–γ model (`predictedSeconds`), of those that the order allows; on two ranks there is but one order.
 *
 * Cost: the first choice of a kind asks each candidate what it costs, for each power of two of segments up to its
 * `mostSegments`, O(messages of all ranks); costs are linear in S, so later ones are O(candidates).
 *
 * @param candidates algorithms to choose from, the first of equals. Default: the whole table.
 * @returns the choice for a kind and a size; it throws InvariantError when no candidate fits.
 */
export const algorithmSelector = (
  { worldSize, sharesMemory, hosts, link = ethernetLinks, order = "rank" }: GroupSituation,
  candidates: readonly Algorithm[] = algorithms,
): ((kind: CollectiveKind, byteLength: number) => Choice) => {
  const allowed = (algorithm: Algorithm): boolean => order === "any" || algorithm.rankOrder || worldSize <= 2;
  const segmentsOf = (algorithm: Algorithm): number[] => {
    const counts: number[] = [];
    for (let segments = 1; segments <= (algorithm.mostSegments ?? 1); segments *= 2) counts.push(segments);
    return counts;
  };
  const known = new Map<CollectiveKind, readonly (Choice & { readonly pathOfOneByte: Load })[]>();
  const pricesOf = (kind: CollectiveKind): readonly (Choice & { readonly pathOfOneByte: Load })[] => {
    const found = known.get(kind);
    if (found !== undefined) return found;
    const prices = candidates
      .filter((algorithm) => algorithm.kind === kind && allowed(algorithm))
      .flatMap((algorithm) =>
        segmentsOf(algorithm).map((segments) => ({
          algorithm,
          segments,
          pathOfOneByte: algorithm.cost({ worldSize, byteLength: 1, segments, ...(hosts && { hosts }) }).path,
        })),
      );
    known.set(kind, prices);
    return prices;
  };
  return (kind, byteLength) => {
    const direct = sharesMemory ? inSharedMemory[kind] : undefined;
    if (direct !== undefined) return { algorithm: direct, segments: 1 };
    let best: Choice | undefined;
    let least = Infinity;
    for (const { algorithm, segments, pathOfOneByte } of pricesOf(kind)) {
      const seconds = secondsOfPath(pathOfOneByte, byteLength, segments, link);
      if (seconds < least) [best, least] = [{ algorithm, segments }, seconds];
    }
    if (best === undefined)
      throw new InvariantError(
        `no algorithm for the collective "${kind}" on ${worldSize} ranks among ${candidates.length} candidates`,
      );
    return best;
  };
};

/** Choose once: `algorithmSelector` for a single request. */
export const selectAlgorithm = (
  { kind, byteLength, ...group }: Situation,
  candidates: readonly Algorithm[] = algorithms,
): Choice => algorithmSelector(group, candidates)(kind, byteLength);
