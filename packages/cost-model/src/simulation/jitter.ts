import { ArgumentError, randomKey } from "@skein/tensor-core";
import { foldInKey, threefry2x32 } from "@skein/tensor-core/backend";

/** Options of the random variation of times; plain data. */
export interface JitterOptions {
  /** Seed of the variation. Times depend only on the seed, not on the order of calls. */
  readonly seed: number;
  /** Coefficient of variation (standard deviation divided by mean) of each computation. Default: 0. */
  readonly computeVariation?: number | undefined;
  /** Coefficient of variation of a rank's total computation per step. Default: 0. */
  readonly stepVariation?: number | undefined;
  /**
   * Coefficient of variation of each member's time in a collective. The collective ends with its slowest member.
   * Default: 0.
   */
  readonly communicationVariation?: number | undefined;
  /**
   * Options for stragglers: each rank is a straggler with probability `share`, and the computations of a straggler take
   * `factor` times as long. Absent: no stragglers.
   */
  readonly stragglers?: { readonly share: number; readonly factor: number } | undefined;
}

/** Functions that return random factors for times. A factor depends only on seed, rank, step and task. */
export interface Jitter {
  readonly computeFactor: (rank: number, step: number, task: number) => number;
  readonly communicationFactor: (rank: number, step: number, task: number) => number;
  /** Returns the straggler factor of a rank, which `computeFactor` includes; 1 for other ranks. */
  readonly rankFactor: (rank: number) => number;
  /** Whether ranks with equal `rankFactor` have equal factors for all tasks. */
  readonly sameOnRanks: boolean;
}

/**
 * Purposes of random numbers. The constant of a purpose is folded into the key of the seed or of a step, so that each
 * purpose has independent random numbers.
 */
const purposes = { computation: 0, communication: 1, stragglers: 2, steps: 3 } as const;

const uniform = (word: number): number => (word + 0.5) / 2 ** 32;

/**
 * Builds a source of random variation. Factors are log-normal with mean 1: exp(σz − σ²/2) with σ² = ln(1 + c²),
 * coefficient of variation c and standard normal z. Like measured times, log-normal factors are never negative and have
 * a longer tail towards large values.
 *
 * @throws ArgumentError if the seed, a variation, the share or the factor is out of range.
 * @example jitterOf({ seed: 1, computeVariation: 0.05, stragglers: { share: 0.01, factor: 2 } }).computeFactor(3, 0,
 * 17);
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
        `jitter: ${name} is ${value}, but must be finite and not negative; use a coefficient of variation such as 0.05`,
      );
  const { share = 0, factor = 1 } = stragglers ?? {};
  if (!(share >= 0 && share <= 1 && factor > 0 && Number.isFinite(factor)))
    throw new ArgumentError(
      `jitter: stragglers have share ${share} and factor ${factor}, but the share must be from 0 to 1, and the factor above 0; correct them`,
    );
  const key = randomKey(seed).data;
  const stragglerKey = foldInKey(key, purposes.stragglers);
  const rankFactor = (rank: number): number =>
    share > 0 && uniform(threefry2x32(stragglerKey, [rank, 0])[0]) < share ? factor : 1;

  const logNormal = (variation: number, purpose: number): Jitter["computeFactor"] => {
    if (variation === 0) return () => 1;
    const variance = Math.log1p(variation ** 2);
    const deviation = Math.sqrt(variance);
    const purposeKey = foldInKey(key, purpose);
    const keys: (readonly number[])[] = [];
    return (rank, step, task) => {
      const [first, second] = threefry2x32((keys[step] ??= foldInKey(purposeKey, step)), [rank, task]);
      const normal = Math.sqrt(-2 * Math.log(uniform(first))) * Math.cos(2 * Math.PI * uniform(second));
      return Math.exp(deviation * normal - variance / 2);
    };
  };
  const scattered = logNormal(computeVariation, purposes.computation);
  const drawStep = logNormal(stepVariation, purposes.steps);
  const known: Map<number, number>[] = [];
  // The factor is cached, because every task of a step needs it.
  const stepFactor = (rank: number, step: number): number => {
    const drawn = (known[step] ??= new Map());
    const factor = drawn.get(rank) ?? drawStep(rank, step, 0);
    drawn.set(rank, factor);
    return factor;
  };
  return {
    computeFactor: (rank, step, task) => rankFactor(rank) * scattered(rank, step, task) * stepFactor(rank, step),
    communicationFactor: logNormal(communicationVariation, purposes.communication),
    rankFactor,
    sameOnRanks: computeVariation === 0 && stepVariation === 0 && communicationVariation === 0,
  };
};
