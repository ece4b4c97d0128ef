import { type HardwareFile, type MeasuredStep, repeatLastDoubling } from "@skein/cost-model";
import { ArgumentError } from "@skein/tensor-core";
import { milliseconds } from "../milliseconds.ts";

/** The bar that a prediction for more ranks than were measured has to beat. */
export interface Extrapolation {
  /** Seconds of a step without a model. */
  readonly stepSeconds: number;
  /** Numbers of ranks that were measured, smallest first. */
  readonly from: readonly number[];
}

/**
 * Read a measurement as the option `--measured` has it.
 *
 * @param text RANKS=SECONDS, such as 4=0.081.
 * @throws ArgumentError for other text.
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
 * Extrapolate the step of a job to its ranks without a model, from measurements of fewer ranks: those that are given,
 * else those of the job of this name that the hardware file was calibrated with, over the links that it still has.
 *
 * @returns undefined if nothing is given, and nothing was measured with fewer ranks.
 * @throws ArgumentError if steps are given, none of them with fewer ranks.
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
 * The extrapolation without a model next to a prediction for more ranks than the hardware file describes or than were
 * measured.
 */
export const extrapolationLines = (
  { ranks }: { readonly ranks: number },
  { topology, calibration }: Pick<HardwareFile, "calibration" | "topology">,
  extrapolated: Extrapolation | undefined,
): readonly string[] => {
  if (extrapolated !== undefined) {
    const { from, stepSeconds } = extrapolated;
    const how = from.length > 1 ? `the last doubling of ${from.join(", ")} ranks repeated` : `as on ${from[0]!} ranks`;
    return [`without a model ${milliseconds(stepSeconds)} a step, ${how}: the bar that the model has to beat`];
  }
  return calibration !== undefined && ranks > topology.ranks
    ? [
        `extrapolated: the hardware file was calibrated with ${topology.ranks} ranks; to compare with no model, give measured steps, such as --measured ${topology.ranks}=SECONDS`,
      ]
    : [];
};
