import type { CalibratedRun } from "@skein/cost-model/hardware";
import { millisecondsText } from "@skein/report";

/** Relative prediction error of a calibration run above which a warning is printed. */
const tolerance = 0.1;

const errorOf = ({ measuredSeconds, predictedSeconds }: CalibratedRun): number =>
  predictedSeconds / measuredSeconds - 1;

const percent = (share: number): string => `${(100 * Math.abs(share)).toFixed(0)} %`;

/** Formats a relative error: −0.23 → "23 % too fast". */
const inWords = (error: number): string => `${percent(error)} too ${error < 0 ? "fast" : "slow"}`;

/**
 * Formats the largest spread between rounds over all runs. If each run has a single round, returns a line that says so.
 */
const noiseLines = (runs: readonly CalibratedRun[]): string[] => {
  const spreads = runs.flatMap(({ spread }) => (spread === undefined ? [] : [spread]));
  return spreads.length === 0
    ? ["noise        unknown from one round; measure with --rounds 3"]
    : [`noise        rounds of one job differ by up to ${percent(Math.max(...spreads))}`];
};

/**
 * Returns warnings about calibration runs whose step time, predicted with the same hardware file, is more than 10 %
 * wrong, largest error first. Empty if there are no such runs.
 */
export const missedRunLines = (runs: readonly CalibratedRun[]): string[] => {
  const missed = runs
    .filter((run) => Math.abs(errorOf(run)) > tolerance)
    .toSorted((a, b) => Math.abs(errorOf(b)) - Math.abs(errorOf(a)));
  const [worst] = missed;
  if (worst === undefined) return [];
  const overlapped = missed.filter(({ overlaps }) => overlaps).length;
  return [
    `warning: ${missed.length} of the ${runs.length} jobs that it was calibrated with are predicted more than ${percent(tolerance)} off, ${overlapped} of them with overlap`,
    ...missed.map((run) => {
      const spread = run.spread === undefined ? "" : `, its rounds differ by ${percent(run.spread)}`;
      return `  ${inWords(errorOf(run))}${spread}: ${run.name}`;
    }),
    "  expect other predictions to be off as far; calibrate on a machine without other work, with more --rounds",
  ];
};

/** Formats the output of `calibrate` about the measured jobs: times, noise and warnings. */
export const calibrationLines = (runs: readonly CalibratedRun[]): string[] => [
  "jobs         measured   with these figures",
  ...runs.map(
    (run) =>
      `  ${millisecondsText(run.measuredSeconds).padStart(17)} ${millisecondsText(run.predictedSeconds).padStart(12)}  ${run.name}`,
  ),
  ...noiseLines(runs),
  ...missedRunLines(runs),
];
