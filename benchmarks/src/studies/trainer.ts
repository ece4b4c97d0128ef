import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { summarize } from "@skein/measuring";
import { expertFigures } from "./expert-figures.ts";
import type { Figures, Outcome } from "./outcome.ts";
import { overCycle } from "./over-cycle.ts";
import { type Ended, programOf, runProgram } from "./run-program.ts";
import type { Run } from "./run.ts";
import { stageTimes } from "./stage-times.ts";

/** Command that starts skein-train. */
const skeinTrain: readonly string[] = programOf("trainer");

/** Output of the trainer with `--json`. */
interface TrainerSummary {
  readonly testLoss: number;
  readonly testAccuracy?: number;
  readonly bitsPerByte?: number;
  readonly bytesSentPerRank: number;
  readonly denseBytesPerRank: number;
  readonly peakMemoryBytes: number;
  /** Path of the last checkpoint's folder. Absent: no checkpoint was written. */
  readonly checkpoint?: string;
}

/** Part of a checkpoint's manifest that contains the K-FAC variant that the trainer planned. */
interface PlannedManifest {
  readonly plan?: { readonly curvature?: { readonly form: { readonly kind: string; readonly fraction?: number } } };
}

/** Line for a step in `metrics.jsonl`. */
interface StepLine {
  readonly type: string;
  readonly samplesPerSecond: number;
  readonly exposedSeconds?: number;
}

/**
 * Shortens an error message for a table cell. Drops the lines of stack traces, then keeps the lines that `pick`
 * returns.
 */
const brief = (text: string, pick: (lines: readonly string[]) => readonly string[]): string => {
  const picked = pick(text.split("\n").filter((line) => /^\S/.test(line)));
  const line = picked.length === 0 ? "it said nothing" : picked.join("; then ").replaceAll("|", "\\|");
  return line.length > 240 ? `${line.slice(0, 239)}…` : line;
};
/** Returns the first line of a message. A rejected job has one line per error. */
const firstLine = (text: string): string => brief(text, (lines) => lines.slice(0, 1));
/**
 * Returns the last two lines of a message. The last line may report only that a rank ended, and the line before
 * contains the reason.
 */
const lastLines = (text: string): string => brief(text, (lines) => lines.slice(-2));

const traceFile = "trace.json";

/** Summarizes the time of each stage over the steps after warm-up. */
const stagesOf = (run: Run, folder: string): Figures["stageSeconds"] => {
  if (run.stages === undefined) return undefined;
  const steps = stageTimes(join(folder, traceFile), run.stages);
  const counted = steps.slice(steps.length > run.warmUpSteps ? run.warmUpSteps : 0);
  const names = new Set(counted.flatMap((stages) => [...stages.keys()]));
  const ofStage = (name: string): number[] => counted.map((stages) => stages.get(name) ?? 0);
  return Object.fromEntries([...names].map((name) => [name, overCycle(ofStage(name), run.cycle ?? 1)]));
};

const formOf = (folder: string, { checkpoint }: TrainerSummary): string | undefined => {
  if (checkpoint === undefined) return undefined;
  const manifest = JSON.parse(readFileSync(join(folder, checkpoint, "manifest.json"), "utf8")) as PlannedManifest;
  const form = manifest.plan?.curvature?.form;
  return form && [form.kind, form.fraction].filter((part) => part !== undefined).join(" ");
};

const figuresOf = (run: Run, folder: string, stdout: string): Figures => {
  const summary = JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as TrainerSummary;
  const { testLoss, testAccuracy, bitsPerByte, bytesSentPerRank, denseBytesPerRank, peakMemoryBytes } = summary;
  const batch = run.job["batch"] as number;
  const lines = readFileSync(join(folder, "run/metrics.jsonl"), "utf8").trimEnd().split("\n");
  const steps = lines.map((line) => JSON.parse(line) as StepLine).filter(({ type }) => type === "step");
  const counted = steps.slice(steps.length > run.warmUpSteps ? run.warmUpSteps : 0);
  const exposed = counted.flatMap(({ exposedSeconds }) => exposedSeconds ?? []);
  const seconds = counted.map(({ samplesPerSecond }) => batch / samplesPerSecond);
  const [stageSeconds, form] = [stagesOf(run, folder), formOf(folder, summary)];
  const experts = expertFigures(counted);
  return {
    testLoss,
    ...(testAccuracy !== undefined && { testAccuracy }),
    ...(bitsPerByte !== undefined && { bitsPerByte }),
    steps: steps.length,
    batch,
    bytesSentPerStep: bytesSentPerRank / steps.length,
    denseBytesPerStep: denseBytesPerRank / steps.length,
    stepSeconds: summarize(seconds),
    ...(run.cycle !== undefined && { cycleSeconds: overCycle(seconds, run.cycle) }),
    ...(stageSeconds !== undefined && { stageSeconds }),
    ...(form !== undefined && { form }),
    ...(exposed.length > 0 && { exposedSeconds: summarize(exposed) }),
    ...(experts !== undefined && { experts }),
    peakMemoryBytes,
  };
};

const judge = (run: Run, folder: string, { code, stdout, stderr, tooLong }: Ended): Outcome => {
  if (tooLong) return { kind: "too-long", reason: `given up after ${run.minutes} minutes` };
  if (code === 0) {
    const figures = figuresOf(run, folder, stdout);
    // Gradients stayed finite, but the loss on held-out samples overflowed. JSON has no NaN, so the loss is then null.
    if (!Number.isFinite(figures.testLoss)) return { kind: "diverged", reason: "the held-out loss is not finite" };
    return { kind: "done", ...figures };
  }
  // The trainer reports a loss that is not finite on one line, like job errors, but it is a result of the method.
  if (/ is not finite \(/.test(stderr)) return { kind: "diverged", reason: lastLines(stderr) };
  return code === 2 ? { kind: "refused", reason: firstLine(stderr) } : { kind: "failed", reason: lastLines(stderr) };
};

/** Runs a function in a temporary folder with a run's job and files, and removes the folder afterwards. */
export const inFolder = async <Result>(
  run: Pick<Run, "job" | "files">,
  act: (folder: string) => Promise<Result>,
): Promise<Result> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-study-"));
  try {
    // Every JSON file is also YAML.
    writeFileSync(join(folder, "job.json"), JSON.stringify(run.job, undefined, 2));
    for (const [name, text] of Object.entries(run.files ?? {})) writeFileSync(join(folder, name), text);
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/**
 * Trains in a separate process, in a temporary folder.
 *
 * @param command Command that starts the trainer; tests pass another command.
 * @returns the outcome, including failures.
 * @throws Interrupted after SIGINT or SIGTERM, after the trainer has exited as well.
 */
export const train = (run: Run, command: readonly string[] = skeinTrain): Promise<Outcome> =>
  inFolder(run, async (folder) => {
    const trace = run.stages === undefined ? [] : ["--trace", traceFile];
    const options = ["--json", "--quiet", "--output", "run", "--max-restarts", "0", ...trace];
    return judge(run, folder, await runProgram([...command, "run", "job.json", ...options], folder, run.minutes));
  });

/** Validates a job with the trainer. @returns the error message, or undefined if the job is valid. */
export const complaintOf = (run: Run, command: readonly string[] = skeinTrain): Promise<string | undefined> =>
  inFolder(run, async (folder) => {
    const { code, stderr } = await runProgram([...command, "validate", "job.json"], folder, 1);
    return code === 0 ? undefined : firstLine(stderr);
  });
