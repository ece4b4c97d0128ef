import type { DataError } from "@skein/data";
import type { RankRun } from "./rank-run.ts";

/** Requests the end of the run because samples are unreadable. */
export type CutShort = (error: DataError) => void;

/**
 * Returns a function that requests the end of the run: all ranks complete the same last step and save. Only the first
 * call has an effect.
 */
export const cutShortOnce = ({ stop, report }: Pick<RankRun, "stop" | "report">): CutShort => {
  let isCutShort = false;
  return (error) => {
    if (isCutShort) return;
    isCutShort = true;
    stop.request(); // at once, because ranks of this process may be at most one step ahead of the last step
    report.cutShort(error);
  };
};
