import { ArgumentError, randomKey } from "@skein/tensor-core";
import { foldInKey, threefry2x32 } from "@skein/tensor-core/backend";

/** How times scatter; plain data. */
export interface JitterOptions {
  /** The same seed gives the same times, in whatever order they are asked for. */
  readonly seed: number;
  /** Coefficient of variation of each computation: standard deviation over mean. Default: 0. */
  readonly computeVariation?: number | undefined;
  /** The same of all that a rank computes in one step together. Default: 0. */
  readonly stepVariation?: number | undefined;
  /** The same of each member's part in a collective, which is over when the slowest is. Default: 0. */
  readonly communicationVariation?: number | undefined;
  /** Each rank is, with probability `share`, one whose computations all take `factor` times as long. Default: none. */
  readonly stragglers?: { readonly share: number; readonly factor: number } | undefined;
}

/** By how much times are multiplied, drawn by rank, step and task alone. */
export interface Jitter {
  readonly computeFactor: (rank: number, step: number, task: number) => number;
  readonly communicationFactor: (rank: number, step: number, task: number) => number;
  /** The straggler's part of `computeFactor`. */
  readonly rankFactor: (rank: number) => number;
  /** Whether ranks of one `rankFactor` have the same factors. */
  readonly sameOnRanks: boolean;
}

/** Folded into the seed's key, or into that of a step. */
const [ofComputation, ofCommunication, ofStragglers, ofSteps] = [0, 1, 2, 3];

const uniform = (word: number): number => (word + 0.5) / 2 ** 32;

/**
 * Draw how times scatter. Factors are log-normal with mean 1: exp(σz − σ²/2), σ² = ln(1 + c²) for a coefficient of
 * variation c and z from a standard normal distribution, since times are never negative and their delays are longer
 * than their gains.
 *
 * @throws ArgumentError for a seed, variation, share or factor out of range.
 * @example
 * jitterOf({ seed: 1, computeVariation: 0.05, stragglers: { share: 0.01, factor: 2 } }).computeFactor(3, 0, 17);
 *
 * Source: Threefry (Salmon et al., SC'11) of tensor-core; Box and Muller 1958.
 */
export const jitterOf = ({
  seed,
  computeVariation = 0,
  stepVariation = 0,
  communicationVariation = 0,
  stragglers,
}: JitterOptions): Jitter => {
  for (const [name, value] of Object.entries({ computeVariation, stepVariation, communicationVariation }))
    if (!(value >= 0 && Number.isFinite(value)))
      throw new ArgumentError(
        `jitter: ${name} ${value} was given; a coefficient of variation is finite and not negative`,
      );
  const { share = 0, factor = 1 } = stragglers ?? {};
  if (!(share >= 0 && share <= 1 && factor > 0 && Number.isFinite(factor)))
    throw new ArgumentError(
      `jitter: a share of ${share} of the ranks at ${factor} times the seconds was given; use 0 to 1, and above 0`,
    );
  const key = randomKey(seed).data;
  const stragglerKey = foldInKey(key, ofStragglers);
  const rankFactor = (rank: number): number =>
    share > 0 && uniform(threefry2x32(stragglerKey, [rank, 0])[0]) < share ? factor : 1;

  const logNormal = (variation: number, purpose: number): Jitter["computeFactor"] => {
    if (variation === 0) return () => 1;
    const variance = Math.log1p(variation ** 2);
    const deviation = Math.sqrt(variance);
    const ofPurpose = foldInKey(key, purpose);
    const keys: (readonly number[])[] = [];
    return (rank, step, task) => {
      const [first, second] = threefry2x32((keys[step] ??= foldInKey(ofPurpose, step)), [rank, task]);
      const normal = Math.sqrt(-2 * Math.log(uniform(first))) * Math.cos(2 * Math.PI * uniform(second));
      return Math.exp(deviation * normal - variance / 2);
    };
  };
  const scattered = logNormal(computeVariation, ofComputation);
  const drawStep = logNormal(stepVariation, ofSteps);
  const known: Map<number, number>[] = [];
  // Asked for by every task of a step.
  const ofStep = (rank: number, step: number): number => {
    const drawn = (known[step] ??= new Map());
    const factor = drawn.get(rank) ?? drawStep(rank, step, 0);
    drawn.set(rank, factor);
    return factor;
  };
  return {
    computeFactor: (rank, step, task) => rankFactor(rank) * scattered(rank, step, task) * ofStep(rank, step),
    communicationFactor: logNormal(communicationVariation, ofCommunication),
    rankFactor,
    sameOnRanks: computeVariation === 0 && stepVariation === 0 && communicationVariation === 0,
  };
};
