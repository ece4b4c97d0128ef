import type { MetricTail } from "./metric-tail.ts";
import type { RunFiles } from "./run-files.ts";

export type RunState = "running" | "finished" | "failed" | "stopped";

/** Summary of a run for lists of runs. Unknown numbers are null, because JSON has no undefined. */
export interface RunFacts {
  /** Path of the run relative to the watched folder. */
  readonly id: string;
  readonly state: RunState;
  /** Reason of the failure, as recorded by the run; null if the run did not fail. */
  readonly reason: string | null;
  /** Number of completed steps. */
  readonly step: number | null;
  /** Number of steps of the complete run, from its provenance. */
  readonly totalSteps: number | null;
  readonly epoch: number | null;
  readonly loss: number | null;
  readonly testLoss: number | null;
  /** Share of correctly classified held-out samples, 0 to 1. */
  readonly accuracy: number | null;
  readonly samplesPerSecond: number | null;
  /** Seconds of training: sum over the steps. */
  readonly seconds: number;
  /** Time at which the last line was written, in milliseconds since 1970. */
  readonly writtenAt: number;
  /** Options of the job, by path. */
  readonly options: Readonly<Record<string, string>>;
  readonly rows: Readonly<Record<string, number>>;
  readonly generation: number;
  /** Number of invalid lines in the metrics file. */
  readonly skippedLines: number;
  /** Share of the metrics file that has been read, 0 to 1; null if the complete file has been read. */
  readonly loaded: number | null;
  /** Reasons why files cannot be read; null if all files can be read. */
  readonly fault: string | null;
}

/** Maximum number of characters of a failure reason. */
const maxReason = 1000;
/**
 * Minimum number of seconds without a new line after which a run counts as stopped. The time is longer if steps are
 * long.
 */
const silenceSeconds = 60;
const silentSteps = 10;
/**
 * Tolerance in milliseconds when the write times of the summary and of the last line of metrics are compared, because
 * file timestamps are coarse. The summary of a finished run is written after the last line.
 */
const summarySlackMilliseconds = 2_000;

const isAlive = (provenance: RunFiles["provenance"], host: string): boolean | undefined => {
  const pid = provenance?.["pid"];
  if (provenance?.["host"] !== host || typeof pid !== "number" || !Number.isSafeInteger(pid) || pid <= 0)
    return undefined;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/**
 * Returns the state of a run, from the run's own record of how it ended, if there is one. Otherwise, the state depends
 * on the run's process if the run is on this machine, or else on the age of the last line.
 */
export const stateOf = (
  tail: Pick<MetricTail, "writtenAt">,
  files: RunFiles,
  stepSeconds: number,
  now: number,
  host: string,
): { readonly state: RunState; readonly reason: string | null } => {
  const ended = files.provenance?.["ended"] as { readonly how?: unknown; readonly reason?: unknown } | undefined;
  if (ended?.how === "finished" || ended?.how === "failed" || ended?.how === "stopped")
    return { state: ended.how, reason: typeof ended.reason === "string" ? ended.reason.slice(0, maxReason) : null };
  if (files.summaryWrittenAt !== undefined && files.summaryWrittenAt + summarySlackMilliseconds >= tail.writtenAt)
    return { state: "finished", reason: null };
  const alive = isAlive(files.provenance, host);
  if (alive === false) return { state: "stopped", reason: "its process ended without recording a reason" };
  const silence = (now - tail.writtenAt) / 1000;
  const isSilent = silence > Math.max(silenceSeconds, silentSteps * (Number.isFinite(stepSeconds) ? stepSeconds : 0));
  return { state: isSilent && alive !== true ? "stopped" : "running", reason: null };
};

const known = (value: number | undefined): number | null =>
  value === undefined || !Number.isFinite(value) ? null : Number(value.toPrecision(7)); // the precision of f32

/**
 * Returns the summary of a run for lists of runs.
 * @param fault Reason why the metrics cannot be read. Undefined: the metrics can be read.
 */
export const factsOf = (
  id: string,
  tail: MetricTail,
  files: RunFiles,
  now: number,
  host: string,
  fault?: string,
): RunFacts => {
  const { byType, skippedLines } = tail.table;
  const [steps, tests] = [byType.get("step"), byType.get("evaluation")];
  const last = (steps?.length ?? 0) - 1;
  const summaryNumber = (name: string): number | undefined => {
    const value = files.summary?.[name];
    return typeof value === "number" ? value : undefined;
  };
  const total = files.provenance?.["totalSteps"];
  return {
    id,
    ...stateOf(tail, files, steps?.last("seconds")?.value ?? 0, now, host),
    step: last < 0 ? null : steps!.steps[last]!,
    totalSteps: typeof total === "number" ? total : null,
    epoch: known(steps?.last("epoch")?.value),
    loss: known(steps?.last("loss")?.value),
    testLoss: known(tests?.last("loss")?.value ?? summaryNumber("testLoss")),
    accuracy: known(tests?.last("accuracy")?.value ?? summaryNumber("testAccuracy")),
    samplesPerSecond: known(steps?.last("samplesPerSecond")?.value),
    seconds: last < 0 ? 0 : steps!.times[last]!,
    writtenAt: tail.writtenAt,
    options: files.options,
    rows: Object.fromEntries([...byType].map(([type, rows]) => [type, rows.length])),
    generation: tail.generation,
    skippedLines,
    loaded: tail.share === 1 ? null : Number(tail.share.toFixed(2)),
    fault: [...(fault === undefined ? [] : [fault]), ...files.faults].join("; ") || null,
  };
};
