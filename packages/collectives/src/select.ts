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
import type { Algorithm, CostParameters, Load } from "./schedule.ts";

/**
 * Parameters shared by all choices in one group. These parameters are equal on all ranks, so all ranks choose the same
 * algorithm.
 */
export interface GroupSelectionOptions {
  readonly worldSize: number;
  /** Whether every rank can read every other rank's memory. */
  readonly sharesMemory: boolean;
  /** Ranks by host. Default: every rank on a separate host. */
  readonly hosts?: readonly (readonly number[])[];
  /** Costs of messages and sums. Default: `ethernetLinks`. */
  readonly link?: LinkCosts;
  /**
   * Allowed order of sums. "rank": only algorithms that sum in rank order, so that results are bitwise identical over
   * every transport and with every bucket size. "any": all algorithms; correct for integers, and for floats if bits may
   * differ between transports. Default: "rank".
   */
  readonly order?: "rank" | "any";
}

/** Parameters for the choice of one algorithm. */
export interface SelectionOptions extends GroupSelectionOptions {
  readonly kind: CollectiveKind;
  /** Operand size in bytes, S of docs/algorithms.md. */
  readonly byteLength: number;
}

/** A chosen algorithm, and the number of segments of its vector. */
export interface AlgorithmChoice {
  readonly algorithm: Algorithm;
  readonly segments: number;
}

/**
 * Link costs that are assumed if links were not measured. Within a host, between processes: `skein-train links`
 * measured 76 to 121 µs and 1.8 to 2.2 GB/s on loopback in November 2026. Between hosts: the same latency plus 10
 * Gbit/s Ethernet, 25 µs and 1.25 GB/s. Sums: 2 GB/s of summands that have just arrived, if the other operands are not
 * in any cache. With these values, vectors are segmented when segmenting was measured to be faster
 * (docs/experiments.md).
 */
export const ethernetLinks: LinkCosts = {
  within: { secondsPerMessage: 75e-6, secondsPerByte: 1 / 2e9 },
  across: { secondsPerMessage: 100e-6, secondsPerByte: 1 / 1.25e9 },
  reduceSecondsPerByte: 1 / 2e9,
};

/**
 * Returns the predicted time of a critical path in seconds.
 *
 * @param scale factor for the byte counts of the path: 1 for absolute counts, or S in bytes for counts per byte of the
 * operand size S.
 */
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
 * Returns the predicted time of an algorithm in the α–β–γ model, in seconds: the time of its messages plus the time of
 * its sums. With s segments, the messages of one segment overlap with the sums of another segment. Then only 1/s of the
 * shorter time is added to the longer time.
 * @example
 * ```ts
 * const seconds = predictedSeconds(ringAllReduce, { worldSize: 4, byteLength: 1e6 }, ethernetLinks);
 * console.log(seconds < predictedSeconds(ringAllReduce, { worldSize: 4, byteLength: 1e8 }, ethernetLinks)); // true
 * ```
 */
export const predictedSeconds = (
  algorithm: Pick<Algorithm, "cost">,
  parameters: CostParameters,
  link: LinkCosts,
): number => secondsOfPath(algorithm.cost(parameters).path, 1, parameters.segments ?? 1, link);

// Algorithms in shared memory. Each rank reads and writes every byte one time, and a message is only an address
// (docs/experiments.md has measurements of the all-reduce between threads).
const inSharedMemory: { readonly [K in CollectiveKind]?: Algorithm } = {
  "all-reduce": directAllReduce,
  "reduce-scatter": directReduceScatter,
  "all-gather": directAllGather,
  "all-to-all": pairwiseAllToAll,
  broadcast: binomialBroadcast,
  reduce: reduceScatterGatherReduce,
};

/**
 * Returns a function that chooses an algorithm and a number of segments for each request of a group. In shared memory a
 * rank reads every peer's operand in place, so the direct algorithms are fastest at every size. Over messages, the
 * function chooses the algorithm with the shortest predicted time (`predictedSeconds`) among the algorithms that
 * `order` allows. For two ranks all algorithms are allowed, because a sum of two operands does not depend on their
 * order.
 *
 * Cost: the first choice for a kind of collective computes the cost of each candidate, for each power of two of
 * segments up to its `maxSegments`, O(messages of all ranks). Costs are linear in S, so later choices are
 * O(candidates).
 *
 * @param candidates algorithms to choose from. If several candidates have equal predicted times, the first candidate is
 * chosen. Default: all algorithms.
 * @returns a function from kind and size in bytes to the choice; it throws InvariantError if no candidate is suitable.
 * @example
 * ```ts
 * const select = algorithmSelector({ worldSize: 8, sharesMemory: false });
 * console.log(select("all-reduce", 2 ** 26).algorithm.name); // direct-all-reduce
 * ```
 */
export const algorithmSelector = (
  { worldSize, sharesMemory, hosts, link = ethernetLinks, order = "rank" }: GroupSelectionOptions,
  candidates: readonly Algorithm[] = algorithms,
): ((kind: CollectiveKind, byteLength: number) => AlgorithmChoice) => {
  const allowed = (algorithm: Algorithm): boolean => order === "any" || algorithm.rankOrder || worldSize <= 2;
  const segmentsOf = (algorithm: Algorithm): number[] => {
    const counts: number[] = [];
    for (let segments = 1; segments <= (algorithm.maxSegments ?? 1); segments *= 2) counts.push(segments);
    return counts;
  };
  const known = new Map<CollectiveKind, readonly (AlgorithmChoice & { readonly pathOfOneByte: Load })[]>();
  const pricesOf = (kind: CollectiveKind): readonly (AlgorithmChoice & { readonly pathOfOneByte: Load })[] => {
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
    let best: AlgorithmChoice | undefined;
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

/**
 * Chooses an algorithm for a single request, with `algorithmSelector`.
 *
 * @example
 * ```ts
 * const { algorithm } = selectAlgorithm({ kind: "all-reduce", byteLength: 64, worldSize: 8, sharesMemory: false });
 * console.log(algorithm.name); // gather-all-reduce
 * ```
 */
export const selectAlgorithm = (
  { kind, byteLength, ...group }: SelectionOptions,
  candidates: readonly Algorithm[] = algorithms,
): AlgorithmChoice => algorithmSelector(group, candidates)(kind, byteLength);
