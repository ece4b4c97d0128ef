import { algorithms, ethernetLinks, type GroupSituation, predictedSeconds } from "@skein/collectives";
import { isStart, type StepProgram } from "@skein/cost-model";

/** What one algorithm would take. */
export interface AlgorithmPrice {
  readonly algorithm: string;
  /** The number of segments with which it is fastest. */
  readonly segments: number;
  readonly seconds: number;
  /** Whether it adds in the order of ranks: others need `sumOrder: any`, but on two ranks. */
  readonly rankOrder: boolean;
}

/**
 * A collective of a step, and what every algorithm for it would take, fastest first. In shared memory the direct one is
 * chosen whatever these say.
 */
export interface CollectiveChoice {
  readonly collective: string;
  readonly axis: string;
  readonly bytes: number;
  /** How often it is in the step. */
  readonly times: number;
  readonly chosen: string;
  readonly candidates: readonly AlgorithmPrice[];
}

/** List what was chosen for each collective of a step, and from what. @param groups by axis, of more than one rank. */
export const algorithmPrices = (
  program: StepProgram,
  groups: { readonly [axis: string]: GroupSituation },
): CollectiveChoice[] => {
  const alike = Map.groupBy(program.filter(isStart), ({ collective, axis, bytes }) => `${collective} ${axis} ${bytes}`);
  return [...alike.values()].map((own) => {
    const [{ collective, axis, bytes, price }] = own as [(typeof own)[number]];
    const { worldSize, hosts, link = ethernetLinks } = groups[axis]!;
    const candidates = algorithms
      .filter(({ kind }) => kind === collective)
      .map((algorithm): AlgorithmPrice => {
        const counts = Array.from({ length: 1 + Math.floor(Math.log2(algorithm.mostSegments ?? 1)) }, (_, i) => 2 ** i);
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
