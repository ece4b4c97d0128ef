import { median } from "@skein/measuring";
import type { Results } from "./results-file.ts";
import type { Run } from "./run.ts";

/**
 * Estimates the total seconds of runs that follow one another. The duration of each run is estimated from earlier
 * repetitions of the run, otherwise from similar runs, otherwise from the expected seconds.
 */
export const estimateSeconds = (runs: readonly Run[], results: Results): number => {
  const made = [...results.values()].flat().filter(({ outcome }) => outcome.kind === "done");
  const likeOf = new Map<string, number>();
  const secondsLike = ({ expected }: Run): number => {
    const known = likeOf.get(expected.prefix);
    if (known !== undefined) return known;
    const like = made.filter(({ name }) => name.startsWith(`${expected.prefix}/`)).map(({ seconds }) => seconds);
    const seconds = like.length > 0 ? median(like) : expected.seconds;
    likeOf.set(expected.prefix, seconds);
    return seconds;
  };
  const own = Map.groupBy(made, ({ name }) => name);
  return runs.reduce((sum, run) => {
    const earlier = own.get(run.name)?.map(({ seconds }) => seconds);
    return sum + (earlier === undefined ? secondsLike(run) : median(earlier));
  }, 0);
};

/** Formats a duration with the largest fitting unit: 5400 → "1.5 h". */
export const formatDuration = (seconds: number): string =>
  seconds >= 3600
    ? `${(seconds / 3600).toFixed(1)} h`
    : seconds >= 60
      ? `${Math.round(seconds / 60)} min`
      : `${Math.ceil(seconds)} s`;
