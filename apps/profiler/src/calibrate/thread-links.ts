import { secondsOf, type WorldStep } from "@skein/report";
import { type Algorithm, fitLink, type LinkTimes } from "@skein/collectives";
import { algorithms } from "@skein/collectives/algorithms";
import type { ClusterLinks } from "@skein/cost-model/hardware";
import { ArgumentError } from "@skein/tensor-core";

/**
 * A collective of a run: number of messages and bytes on the busiest path of its schedule, and shortest measured time
 * in seconds.
 */
interface PathSample {
  readonly messages: number;
  readonly bytes: number;
  readonly seconds: number;
}

/**
 * Fits the cost of messages between threads of one process to the collectives of a run: α + β · b seconds for b bytes.
 * The cost includes the time to add received values. The fit uses the shortest time of each collective over all steps,
 * because longer times may include waits for a late rank.
 *
 * @throws ArgumentError unless the run has two collectives of different sizes.
 */
export const threadLinks = (steps: readonly WorldStep[], worldSize: number): LinkTimes => {
  const byName = new Map<string, PathSample>();
  const pathOf = (name: string, byteLength: number): Omit<PathSample, "seconds"> | undefined => {
    const algorithm: Algorithm | undefined = algorithms.find((one) => one.name === name);
    if (algorithm === undefined) return undefined;
    const hosts = [Array.from({ length: worldSize }, (_, rank) => rank)];
    const { within } = algorithm.cost({ worldSize, byteLength, hosts }).path;
    return { messages: within.messages, bytes: within.bytes };
  };
  for (const { track, name, args = {}, ...span } of steps.flat().flatMap(({ spans }) => spans)) {
    const path =
      track === "collectives" && args.ranks?.length === worldSize
        ? pathOf(args.algorithm ?? "", Math.max(args.bytes ?? 0, args.resultBytes ?? 0))
        : undefined;
    if (path === undefined) continue;
    const seconds = Math.min(secondsOf(span), byName.get(name)?.seconds ?? Infinity);
    byName.set(name, { ...path, seconds });
  }
  const samples = [...byName.values()];
  if (new Set(samples.map(({ bytes }) => bytes)).size < 2)
    throw new ArgumentError(
      `the links of ${worldSize} threads cannot be fitted: the ${samples.length} collectives of the run have one size, and a fit needs two; calibrate with a job that exchanges its gradients in several buckets, such as --set buckets.kind=per-tensor`,
    );
  const { secondsPerMessage, secondsPerByte } = fitLink(samples);
  const messages = Math.max(...samples.map((sample) => sample.messages));
  return { secondsPerMessage: secondsPerMessage / messages, secondsPerByte };
};

/**
 * Default contention of links that were measured with a single flow at a time: concurrent flows share the bandwidth of
 * a link, without an additional penalty.
 */
export const noContention = { penaltyPerFlow: 0 } as const;

/**
 * Builds the links between ranks of one process. All links are equal. Their cost includes the time to add received
 * values.
 */
export const linksOfThreads = (within: LinkTimes, source: string): ClusterLinks => ({
  within,
  across: within,
  reduceSecondsPerByte: 0,
  contention: noContention,
  source,
});
