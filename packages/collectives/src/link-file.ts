import { ArgumentError } from "@skein/tensor-core";

/** Times of one class of links: a message of b bytes takes α + β·b seconds. */
export interface LinkTimes {
  readonly secondsPerMessage: number;
  readonly secondsPerByte: number;
}

/** What the choice of an algorithm goes by. */
export interface LinkCosts {
  /** Between ranks of one host. */
  readonly within: LinkTimes;
  /** Between hosts. The ranks of a host share its link. */
  readonly across: LinkTimes;
  /** γ: of one summand of a reduction. */
  readonly reduceSecondsPerByte: number;
}

/** A line through measured times. */
export interface LinkFit extends LinkTimes {
  /** Share of the variance of times that the line explains; 1 for a perfect line. */
  readonly r2: number;
  /** The largest |α + β·b − t| / t of all samples. */
  readonly worstRelativeError: number;
}

/** One measured message. */
export interface LinkSample {
  readonly bytes: number;
  readonly seconds: number;
}

/** A fit of one ordered pair of ranks. */
export interface PairFit extends LinkFit {
  readonly from: number;
  readonly to: number;
}

/** Which ranks an all-to-all is among: all of them, those of a host, or one of each host. */
export type AllToAllLevel = "all" | "within" | "across";

/** A fit of all-to-alls, all groups of a level at once: β is per byte that a rank sends, those to itself included. */
export interface AllToAllFit extends LinkFit {
  readonly level: AllToAllLevel;
  /** Ranks of a group. */
  readonly ranks: number;
}

/**
 * The measured links of a job, as `skein-train links` writes them: for either class of links the fit over all its pairs
 * (a job on one host, or with one rank per host, has one class), and the fit of each pair.
 */
export interface LinkFile {
  readonly format: "skein-links";
  readonly version: 1;
  /** When it was measured, in ISO 8601. */
  readonly measuredAt: string;
  /** Where, in words. */
  readonly machine: string;
  readonly transport: string;
  /** Sizes of the messages that were timed. */
  readonly messageBytes: readonly number[];
  readonly hosts: readonly (readonly number[])[];
  readonly within?: LinkFit | undefined;
  readonly across?: LinkFit | undefined;
  readonly pairs: readonly PairFit[];
  /** By which it is planned how tokens travel to experts. Files of before have none. */
  readonly allToAll?: readonly AllToAllFit[] | undefined;
  readonly reduceSecondsPerByte: number;
}

/** The JSON text of measured links, which `parseLinkFile` reads. */
export const formatLinkFile = (file: LinkFile): string => `${JSON.stringify(file, undefined, 2)}\n`;

/**
 * What the choice of algorithms takes from a link file. A class of links that the job does not have costs as the other.
 */
export const linkCosts = ({ within, across, reduceSecondsPerByte }: LinkFile): LinkCosts => {
  const timesOf = ({ secondsPerMessage, secondsPerByte }: LinkTimes): LinkTimes => ({
    secondsPerMessage,
    secondsPerByte,
  });
  return { within: timesOf((within ?? across)!), across: timesOf((across ?? within)!), reduceSecondsPerByte };
};

/**
 * Fit α + β·b to measured times by least squares of relative errors, Σ ((α + β·b − t) / t)²: a microsecond counts where
 * a message takes few, so that small sizes settle α and large ones β. Neither may be negative: where the best line
 * would have it so, the best one with zero is taken.
 *
 * @param samples of at least two sizes.
 * @throws ArgumentError for one size only, or a time that is not positive.
 */
export const fitLink = (samples: readonly LinkSample[]): LinkFit => {
  if (new Set(samples.map(({ bytes }) => bytes)).size < 2)
    throw new ArgumentError(
      `a line cannot be laid through ${samples.length} samples of one size; measure messages of two sizes or more`,
    );
  const wrong = samples.find(({ bytes, seconds: time }) => !(time > 0 && Number.isFinite(time) && bytes >= 0));
  if (wrong !== undefined)
    throw new ArgumentError(
      `a message of ${wrong.bytes} bytes cannot take ${wrong.seconds} s; times of messages are above 0`,
    );
  const weighted = samples.map(({ bytes, seconds: time }) => ({ bytes, time, weight: 1 / time ** 2 }));
  const total = (of: (sample: (typeof weighted)[number]) => number): number =>
    weighted.reduce((sum, sample) => sum + sample.weight * of(sample), 0);
  const weight = total(() => 1);
  const [meanBytes, meanTime] = [total(({ bytes }) => bytes) / weight, total(({ time }) => time) / weight];
  // About the means: sums of squares of large sizes that lie close together would cancel.
  const slope =
    total(({ bytes, time }) => (bytes - meanBytes) * (time - meanTime)) /
    total(({ bytes }) => (bytes - meanBytes) ** 2);
  let [alpha, beta] = [meanTime - slope * meanBytes, slope];
  if (alpha < 0) [alpha, beta] = [0, total(({ bytes, time }) => bytes * time) / total(({ bytes }) => bytes ** 2)];
  else if (beta < 0) [alpha, beta] = [meanTime, 0];

  const errors = samples.map(({ bytes, seconds: time }) => alpha + beta * bytes - time);
  const mean = samples.reduce((sum, { seconds: time }) => sum + time, 0) / samples.length;
  const spread = samples.reduce((sum, { seconds: time }) => sum + (time - mean) ** 2, 0);
  const left = errors.reduce((sum, error) => sum + error ** 2, 0);
  return {
    secondsPerMessage: alpha,
    secondsPerByte: beta,
    r2: spread === 0 ? 1 : 1 - left / spread,
    worstRelativeError: Math.max(...errors.map((error, i) => Math.abs(error) / samples[i]!.seconds)),
  };
};
