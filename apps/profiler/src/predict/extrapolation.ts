import type { HardwareFile } from "@skein/cost-model/hardware";
import { type MeasuredStep, repeatLastDoubling } from "@skein/cost-model/calibration";
import { ArgumentError } from "@skein/tensor-core";
import { millisecondsText } from "@skein/report";

/**
 * Step time extrapolated from measurements with fewer ranks, without a model. A prediction should be more accurate than
 * this baseline.
 */
export interface Extrapolation {
  /** Extrapolated step time in seconds. */
  readonly stepSeconds: number;
  /** Rank counts with measurements, in ascending order. */
  readonly from: readonly number[];
}

/**
 * Parses the value of the option `--measured`.
 *
 * @param text Text of the form RANKS=SECONDS, such as 4=0.081.
 * @throws ArgumentError if the text has another format.
 */
export const parseMeasuredStep = (text: string): MeasuredStep => {
  const [ranks, stepSeconds] = text.split("=").map(Number) as [number, number | undefined];
  if (
    text.split("=").length === 2 &&
    Number.isInteger(ranks) &&
    ranks >= 1 &&
    stepSeconds! > 0 &&
    stepSeconds! < Infinity
  )
    return { ranks, stepSeconds: stepSeconds! };
  throw new ArgumentError(
    `--measured ${text} is not RANKS=SECONDS with a whole number of ranks and seconds above 0; give a measured step such as --measured 4=0.081`,
  );
};

/**
 * Extrapolates the step time of a job to its number of ranks, without a model, from measurements with fewer ranks. If
 * no measurements are given, uses the calibration of the hardware file: runs of a job with the same name, unless the
 * links in the file have changed since the calibration.
 *
 * @returns the extrapolation; undefined if no measurements are given and the calibration has no run with fewer ranks.
 * @throws ArgumentError if measurements are given, but all of them have at least as many ranks.
 */
export const extrapolate = (
  { name, ranks }: { readonly name: string; readonly ranks: number },
  { calibration, links, topology }: Pick<HardwareFile, "calibration" | "links" | "topology">,
  given: readonly MeasuredStep[],
): Extrapolation | undefined => {
  const runs = calibration?.links === links.source ? calibration.runs : [];
  const calibrated = runs
    .filter((run) => run.name === name)
    .map(({ measuredSeconds }) => ({ ranks: topology.ranks, stepSeconds: measuredSeconds }));
  const isFewer = (step: MeasuredStep): boolean => step.ranks < ranks;
  const measured = given.length > 0 ? given : calibrated.filter(isFewer);
  if (measured.length === 0) return undefined;
  return {
    stepSeconds: repeatLastDoubling(measured, ranks),
    from: [...new Set(measured.filter(isFewer).map((step) => step.ranks))].toSorted((a, b) => a - b),
  };
};

/**
 * Formats a comparison of a prediction with an extrapolation, for more ranks than were measured or than the hardware
 * file describes.
 */
export const extrapolationLines = (
  { ranks }: { readonly ranks: number },
  { topology, calibration }: Pick<HardwareFile, "calibration" | "topology">,
  extrapolated: Extrapolation | undefined,
): readonly string[] => {
  if (extrapolated !== undefined) {
    const { from, stepSeconds } = extrapolated;
    const how = from.length > 1 ? `repeating the last doubling of ${from.join(", ")} ranks` : `as on ${from[0]!} ranks`;
    return [`without a model ${millisecondsText(stepSeconds)} per step, ${how}: the baseline that the model must beat`];
  }
  return calibration !== undefined && ranks > topology.ranks
    ? [
        `extrapolated: the hardware file was calibrated with ${topology.ranks} ranks; to compare with an extrapolation without a model, give measured steps, such as --measured ${topology.ranks}=SECONDS`,
      ]
    : [];
};
