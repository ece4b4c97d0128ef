import { copyFileSync, linkSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { mostTraceBytes } from "./trace-bytes.ts";

/** Name of a trace in the output folder of a run. */
export const traceFile = "trace.json";

/**
 * Give a trace that was written elsewhere a name in the folder of its run, too, where the page looks for traces: the
 * same bytes on the disk, or a copy where that is another disk and a page can draw it. What cannot be had is left out:
 * the trace is where it was asked for.
 */
export const nameTraceBesideRun = (path: string, output: string): void => {
  if (dirname(resolve(path)) === resolve(output)) return;
  const own = join(output, traceFile);
  try {
    const facts = statSync(path);
    if (!facts.isFile()) return; // a pipe: its reader has it
    rmSync(own, { force: true });
    try {
      linkSync(path, own);
    } catch {
      if (facts.size <= mostTraceBytes) copyFileSync(path, own);
    }
  } catch {
    rmSync(own, { force: true }); // half of one cannot be opened
  }
};
