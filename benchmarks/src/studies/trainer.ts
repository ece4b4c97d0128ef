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

/** Starts skein-train. */
export const skeinTrain: readonly string[] = programOf("trainer");

/** What the trainer prints with `--json`. */
interface TrainerSummary {
  readonly testLoss: number;
  readonly testAccuracy?: number;
  readonly bitsPerByte?: number;
  readonly bytesSentPerRank: number;
  readonly denseBytesPerRank: number;
  readonly peakMemoryBytes: number;
  /** The folder of the last checkpoint. */
  readonly checkpoint?: string;
}

/** What the manifest of a checkpoint says of a form of K-FAC that was planned. */
interface PlannedManifest {
  readonly plan?: { readonly curvature?: { readonly form: { readonly kind: string; readonly fraction?: number } } };
}

/** A step of `metrics.jsonl`. */
interface StepLine {
  readonly type: string;
  readonly samplesPerSecond: number;
  readonly exposedSeconds?: number;
}

/** Lines of a complaint for a cell of a table: no stack, no long ones. */
const brief = (text: string, pick: (lines: readonly string[]) => readonly string[]): string => {
  const picked = pick(text.split("\n").filter((line) => /^\S/.test(line)));
  const line = picked.length === 0 ? "it said nothing" : picked.join("; then ").replaceAll("|", "\\|");
  return line.length > 240 ? `${line.slice(0, 239)}…` : line;
};
/** A refused job is told by a line per fault. */
const firstLine = (text: string): string => brief(text, (lines) => lines.slice(0, 1));
/** The last may say only that a rank has ended; the one before, why. */
const lastLines = (text: string): string => brief(text, (lines) => lines.slice(-2));

const traceFile = "trace.json";

/** The stages of each step that counts, summed up. */
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
    // Finite gradients to the end, but weights that overflow on held-out samples: JSON has no NaN.
    if (!Number.isFinite(figures.testLoss)) return { kind: "diverged", reason: "the held-out loss is not finite" };
    return { kind: "done", ...figures };
  }
  // Told in one line as other mistakes of a job are, but it says something of the method.
  if (/ is not finite \(/.test(stderr)) return { kind: "diverged", reason: lastLines(stderr) };
  return code === 2 ? { kind: "refused", reason: firstLine(stderr) } : { kind: "failed", reason: lastLines(stderr) };
};

/** Do something in a folder that holds a run's job and files, and is removed afterwards. */
export const inFolder = async <Result>(
  run: Pick<Run, "job" | "files">,
  act: (folder: string) => Promise<Result>,
): Promise<Result> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-study-"));
  try {
    // JSON is YAML.
    writeFileSync(join(folder, "job.json"), JSON.stringify(run.job, undefined, 2));
    for (const [name, text] of Object.entries(run.files ?? {})) writeFileSync(join(folder, name), text);
    return await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/**
 * Train in a process of its own, in a folder that is removed afterwards.
 *
 * @param command starts the trainer; tests give another.
 * @returns how it came out, bad ends included.
 * @throws Interrupted after SIGINT or SIGTERM, when the trainer has ended too.
 */
export const train = (run: Run, command: readonly string[] = skeinTrain): Promise<Outcome> =>
  inFolder(run, async (folder) => {
    const trace = run.stages === undefined ? [] : ["--trace", traceFile];
    const options = ["--json", "--quiet", "--output", "run", "--max-restarts", "0", ...trace];
    return judge(run, folder, await runProgram([...command, "run", "job.json", ...options], folder, run.minutes));
  });

/** Let the trainer check the job. @returns why it refuses it, if it does. */
export const complaintOf = (run: Run, command: readonly string[] = skeinTrain): Promise<string | undefined> =>
  inFolder(run, async (folder) => {
    const { code, stderr } = await runProgram([...command, "validate", "job.json"], folder, 1);
    return code === 0 ? undefined : firstLine(stderr);
  });
