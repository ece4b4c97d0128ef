import { join } from "node:path";
import { asTyped, resumeLine, shellQuote } from "@skein/cli/node";
import { readRunFiles, type RunFiles } from "@skein/run-files/node";
import { listCheckpoints, type ListedCheckpoint, type ListedTrace, listTraces } from "./run-listings.ts";

/** Details of a run for display on a page, other than its metrics. */
export interface RunDetails {
  readonly folder: string;
  readonly provenance: RunFiles["provenance"] | null;
  readonly summary: RunFiles["summary"] | null;
  readonly checkpoints: readonly ListedCheckpoint[];
  /** Traces in the folder of the run, newest first, each with the command that creates a report from the trace. */
  readonly traces: readonly (ListedTrace & { readonly command: string })[];
  /** Command that resumes the run; null if there is no checkpoint. */
  readonly resume: string | null;
}

export const runDetails = async (folder: string): Promise<RunDetails> => {
  const { provenance, summary } = await readRunFiles(folder);
  const [checkpoints, traces] = [listCheckpoints(folder), listTraces(folder)];
  return {
    folder,
    provenance: provenance ?? null,
    summary: summary ?? null,
    checkpoints,
    traces: traces.map((trace) => ({
      ...trace,
      command: `skein-profile report ${shellQuote(join(folder, trace.name))}`,
    })),
    resume: checkpoints.length === 0 ? null : asTyped(resumeLine(folder)),
  };
};
