import { ArgumentError } from "@skein/tensor-core";

/** Message times of one class of links: a message of b bytes takes α + β·b seconds. */
export interface LinkTimes {
  readonly secondsPerMessage: number;
  readonly secondsPerByte: number;
}

/** Link and reduction costs, used to choose algorithms. */
export interface LinkCosts {
  /** Message times between ranks of one host. */
  readonly within: LinkTimes;
  /** Message times between ranks of different hosts. The ranks of a host share one link. */
  readonly across: LinkTimes;
  /** γ: reduction time in seconds per byte of each summand. */
  readonly reduceSecondsPerByte: number;
}

/** Linear model α + β·b of message times, fitted to measured times. */
export interface LinkFit extends LinkTimes {
  /** R²: share of the variance of the times that the model explains. A perfect fit has 1. */
  readonly r2: number;
  /** Largest |α + β·b − t| / t over all measured messages. */
  readonly worstRelativeError: number;
}

/** Size and duration of a measured message. */
export interface LinkSample {
  readonly bytes: number;
  readonly seconds: number;
}

/** Linear model of message times for one ordered pair of ranks. */
export interface PairFit extends LinkFit {
  readonly from: number;
  readonly to: number;
}

/** Set of ranks that take part in one all-to-all: all ranks, the ranks of one host, or one rank of each host. */
export type AllToAllLevel = "all" | "within" | "across";

/**
 * Linear model of the duration of an all-to-all, measured while all groups of a level run their all-to-alls at the same
 * time. β is the number of seconds per byte that a rank sends, including bytes to itself.
 */
export interface AllToAllFit extends LinkFit {
  readonly level: AllToAllLevel;
  /** Number of ranks in a group. */
  readonly ranks: number;
}

/**
 * Link measurements of a job, as written by `skein-train links`: one linear model of message times per rank pair, and
 * one per link class (`within`, `across`), fitted over all pairs of the class. A job on one host, or with one rank per
 * host, has only one class.
 */
export interface LinkFile {
  readonly format: "skein-links";
  readonly version: 1;
  /** Time of the measurement, ISO 8601. */
  readonly measuredAt: string;
  /** Description of the machine. */
  readonly machine: string;
  readonly transport: string;
  /** Sizes of the timed messages, in bytes. */
  readonly messageBytes: readonly number[];
  readonly hosts: readonly (readonly number[])[];
  readonly within?: LinkFit | undefined;
  readonly across?: LinkFit | undefined;
  readonly pairs: readonly PairFit[];
  /** Linear models of all-to-all durations, used to plan the token exchange with experts. Absent in older files. */
  readonly allToAll?: readonly AllToAllFit[] | undefined;
  readonly reduceSecondsPerByte: number;
}

/** Returns the JSON text of measured links, which `parseLinkFile` reads. */
export const formatLinkFile = (file: LinkFile): string => `${JSON.stringify(file, undefined, 2)}\n`;

/**
 * Returns the link costs used to choose algorithms. If one class of links was not measured, the costs of the other
 * class are used for both.
 */
export const linkCosts = ({ within, across, reduceSecondsPerByte }: LinkFile): LinkCosts => {
  const timesOf = ({ secondsPerMessage, secondsPerByte }: LinkTimes): LinkTimes => ({
    secondsPerMessage,
    secondsPerByte,
  });
  return { within: timesOf((within ?? across)!), across: timesOf((across ?? within)!), reduceSecondsPerByte };
};

/**
 * Fits α + β·b to measured times by least squares of relative errors, Σ ((α + β·b − t) / t)². A microsecond then has
 * more weight in short messages, so that small sizes determine α and large sizes β. Neither coefficient is negative: if
 * the best line has a negative coefficient, the best line with a zero coefficient is returned.
 *
 * @param samples measured messages of at least two different sizes.
 * @throws ArgumentError if all messages have the same size, or a time is not positive.
 * @example
 * ```ts
 * const samples = [1e5, 1e6, 1e7].map((bytes) => ({ bytes, seconds: 1e-4 + bytes * 1e-9 }));
 * console.log(fitLink(samples).secondsPerMessage.toFixed(4)); // 0.0001
 * ```
 */
export const fitLink = (samples: readonly LinkSample[]): LinkFit => {
  if (new Set(samples.map(({ bytes }) => bytes)).size < 2)
    throw new ArgumentError(
      `cannot fit a line to ${samples.length} samples of one size; measure messages of two sizes or more`,
    );
  const wrong = samples.find(({ bytes, seconds: time }) => !(time > 0 && Number.isFinite(time) && bytes >= 0));
  if (wrong !== undefined)
    throw new ArgumentError(
      `a message of ${wrong.bytes} bytes cannot take ${wrong.seconds} s; message times are positive`,
    );
  const weighted = samples.map(({ bytes, seconds: time }) => ({ bytes, time, weight: 1 / time ** 2 }));
  const total = (of: (sample: (typeof weighted)[number]) => number): number =>
    weighted.reduce((sum, sample) => sum + sample.weight * of(sample), 0);
  const weight = total(() => 1);
  const [meanBytes, meanTime] = [total(({ bytes }) => bytes) / weight, total(({ time }) => time) / weight];
  // Subtract the means: sums of squares of large, similar sizes would suffer from cancellation.
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
