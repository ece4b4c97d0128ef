import { explainDiskFull } from "@skein/cli/node";
import type { Override } from "@skein/job/node";
import { Interruption } from "../processes/interruption.ts";
import { gridPoints, randomPoints, suggestedPoints, type Tried } from "./choose-points.ts";
import { runTrial } from "./run-trial.ts";
import { type Dimension, keyOf, overridesAt, type Point, type Range } from "./search-space.ts";
import { saveSweep, type SweepFile, type Trial, trialFolder } from "./sweep-file.ts";

/** Inputs of a sweep. */
export interface SweepRun {
  readonly file: string;
  /** Overrides of the job that apply to all trials. */
  readonly overrides: readonly Override[];
  readonly dimensions: readonly Dimension[];
  readonly numTrials: number;
  readonly output: string;
  /** State of the sweep: new, or loaded from its folder. */
  readonly sweep: SweepFile;
  readonly interruption: Interruption;
  /** Called with each trial that has ended. */
  readonly onTrial: (trial: Trial) => void;
}

/**
 * Returns the points that are known before the first trial. Undefined: the search chooses points from results of
 * trials.
 */
export const knownPoints = (
  search: SweepFile["settings"]["search"],
  dimensions: readonly Dimension[],
  { numTrials, seed }: { readonly numTrials: number; readonly seed: number },
): readonly Point[] | undefined => {
  if (search === "bayes") return undefined;
  if (search === "random") return randomPoints(dimensions, numTrials, seed);
  return gridPoints(dimensions.map((one) => (one.kind === "choice" ? one.values : [])));
};

const valuesAt = (dimensions: readonly Dimension[], point: Point): Trial["values"] =>
  Object.fromEntries(dimensions.map((dimension, i) => [keyOf(dimension), point[i]]));

const pointOf = (dimensions: readonly Dimension[], { values }: Trial): Point =>
  dimensions.map((dimension) => values[keyOf(dimension)]);

/**
 * Runs all trials of a sweep, `parallel` at a time, and saves their results. Finished and failed trials are not run
 * again. Interrupted trials resume from their checkpoints.
 *
 * @returns the sweep with all results. The sweep has fewer trials than requested if it was interrupted, or if all
 * points have been tried.
 * @throws errors that end a sweep, such as a full disk, after concurrent trials have stopped and saved.
 */
export const runSweep = async (run: SweepRun): Promise<SweepFile> => {
  const { dimensions, numTrials, output, interruption } = run;
  const { search, seed, parallel } = run.sweep.settings;
  let { sweep } = run;
  const keep = (trial: Trial): void => {
    const others = sweep.trials.filter((other) => other.trial !== trial.trial);
    sweep = { ...sweep, trials: [...others, trial].toSorted((a, b) => a.trial - b.trial) };
    try {
      saveSweep(output, sweep);
    } catch (error) {
      throw explainDiskFull(error, output, undefined);
    }
  };
  const stops = new Set<Interruption>();
  interruption.listen(() => {
    for (const stop of stops) stop.request();
  });
  const runOne = async (trial: number, point: Point): Promise<void> => {
    const known = sweep.trials.find((other) => other.trial === trial);
    if (interruption.requested || (known !== undefined && known.state !== "under way")) return;
    const started: Trial = { trial, values: valuesAt(dimensions, point), state: "under way" };
    const stop = new Interruption();
    stops.add(stop);
    try {
      keep(started);
      const end = await runTrial(run.file, [...run.overrides, ...overridesAt(dimensions, point)], {
        output: trialFolder(output, trial),
        parallel,
        interruption: stop,
      });
      if (end === undefined) return;
      const ended = { ...started, ...end };
      keep(ended);
      run.onTrial(ended);
    } catch (error) {
      interruption.request(); // concurrent trials save and stop, and no further trial starts
      throw error;
    } finally {
      stops.delete(stop);
    }
  };
  const runAll = async (points: readonly Point[], first: number): Promise<void> => {
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < points.length) {
        const at = next++;
        await runOne(first + at, points[at]!);
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: Math.min(parallel, points.length) }, work));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  };
  try {
    const known = knownPoints(search, dimensions, { numTrials, seed });
    if (known !== undefined) await runAll(known, 1);
    else
      for (let done = 0; done < numTrials && !interruption.requested; ) {
        // Results are in the order of trial numbers, not in the order in which trials ended, so that a resumed sweep
        // chooses the same points as an uninterrupted sweep.
        const tried = sweep.trials
          .filter(({ trial }) => trial <= done)
          .map((trial): Tried => ({ point: pointOf(dimensions, trial), loss: trial.loss }));
        const count = Math.min(parallel, numTrials - done);
        const points = suggestedPoints(dimensions as readonly Range[], tried, { count, seed });
        await runAll(points, done + 1);
        done += points.length;
        if (points.length < count) break;
      }
    return sweep;
  } finally {
    interruption.listen(undefined);
  }
};
