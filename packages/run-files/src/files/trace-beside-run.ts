import { copyFileSync, linkSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { maxTraceBytes } from "./trace-bytes.ts";

/** File name of a trace in the output folder of a run. */
export const traceFile = "trace.json";

/**
 * Links a trace that was written elsewhere into the folder of its run, where the page looks for traces. Creates a hard
 * link, or a copy if the folder is on another disk and the page can draw the trace. Failures are ignored, because the
 * trace itself is complete.
 */
export const linkTraceIntoRun = (path: string, output: string): void => {
  if (dirname(resolve(path)) === resolve(output)) return;
  const own = join(output, traceFile);
  try {
    const facts = statSync(path);
    if (!facts.isFile()) return; // a pipe: its reader has received the trace
    rmSync(own, { force: true });
    try {
      linkSync(path, own);
    } catch {
      if (facts.size <= maxTraceBytes) copyFileSync(path, own);
    }
  } catch {
    rmSync(own, { force: true }); // a partial copy cannot be opened
  }
};
