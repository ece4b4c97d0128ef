import { algorithms } from "@skein/collectives/algorithms";
import { ethernetLinks, type GroupSelectionOptions, predictedSeconds } from "@skein/collectives";
import { isStart, type StepProgram } from "@skein/cost-model/pricing";

/** Predicted time of a collective with one algorithm. */
export interface AlgorithmPrice {
  readonly algorithm: string;
  /** Number of segments for which the algorithm is fastest. */
  readonly segments: number;
  readonly seconds: number;
  /**
   * Whether the algorithm adds the values of ranks in rank order. Other algorithms require `sumOrder: any`, except on
   * two ranks.
   */
  readonly rankOrder: boolean;
}

/**
 * A collective of a step, with the predicted time of each algorithm, fastest first. In shared memory, the direct
 * algorithm is chosen regardless of predicted times.
 */
export interface CollectiveChoice {
  readonly collective: string;
  readonly axis: string;
  readonly bytes: number;
  /** Number of calls of this collective in the step. */
  readonly times: number;
  readonly chosen: string;
  readonly candidates: readonly AlgorithmPrice[];
}

/**
 * Returns the chosen algorithm and all candidates for each collective of a step.
 * @param groups Groups of more than one rank, by axis.
 */
export const algorithmPrices = (
  program: StepProgram,
  groups: { readonly [axis: string]: GroupSelectionOptions },
): CollectiveChoice[] => {
  const byShape = Map.groupBy(
    program.filter(isStart),
    ({ collective, axis, bytes }) => `${collective} ${axis} ${bytes}`,
  );
  return [...byShape.values()].map((own) => {
    const [{ collective, axis, bytes, price }] = own as [(typeof own)[number]];
    const { worldSize, hosts, link = ethernetLinks } = groups[axis]!;
    const candidates = algorithms
      .filter(({ kind }) => kind === collective)
      .map((algorithm): AlgorithmPrice => {
        const counts = Array.from({ length: 1 + Math.floor(Math.log2(algorithm.maxSegments ?? 1)) }, (_, i) => 2 ** i);
        const [best] = counts
          .map((segments) => ({
            segments,
            seconds: predictedSeconds(
              algorithm,
              { worldSize, byteLength: bytes, segments, ...(hosts && { hosts }) },
              link,
            ),
          }))
          .toSorted((a, b) => a.seconds - b.seconds);
        return { algorithm: algorithm.name, ...best!, rankOrder: algorithm.rankOrder };
      })
      .toSorted((a, b) => a.seconds - b.seconds);
    return { collective, axis, bytes, times: own.length, chosen: price.algorithm, candidates };
  });
};
