import type { DataError } from "@skein/data";
import type { RankRun } from "./rank-run.ts";

/** Ends the run because of unreadable samples. */
export type CutShort = (error: DataError) => void;

/**
 * Returns a function that requests a stop after a step that all ranks complete, after which the state is saved. Only
 * the first call has an effect.
 */
export const cutShortOnce = ({ stop, report }: Pick<RankRun, "stop" | "report">): CutShort => {
  let isCutShort = false;
  return (error) => {
    if (isCutShort) return;
    isCutShort = true;
    stop.request(); // immediately: ranks of this process may be at most one step ahead of the agreed last step
    report.cutShort(error);
  };
};
