import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { train, type TrainEvent, type TrainJob } from "../src/index.ts";
import { checkpointBytes } from "./cli.ts";
import { data, model } from "./points.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-callbacks-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const job = {
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 30,
  steps: 6,
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01 },
  evaluation: { batch: 16, everySteps: 4 },
  checkpoint: { everySteps: 3 },
  data,
  model,
} as const;

const callbacks = (options: object): NonNullable<TrainJob["callbacks"]> => ({
  kind: "module",
  file: new URL("./own-modules.ts", import.meta.url),
  export: "callbacks",
  options: { file: join(folder, "events-seen.jsonl"), ...options },
});
const recordedEvents = (): { readonly type: string; readonly step: number }[] =>
  readFileSync(join(folder, "events-seen.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; step: number });

test("callbacks and readers of a run get the same events, each once and in order; they change no bit", async () => {
  const output = join(folder, "run");
  const events: TrainEvent[] = [];
  const run = train({ ...job, callbacks: callbacks({}) }, { output });
  for await (const event of run) events.push(event);
  const { summary } = await run;

  const happened = events.filter(({ type }) => type !== "note");
  expect(JSON.parse(JSON.stringify(happened))).toEqual(recordedEvents());
  const named = happened.map((event) => `${event.type} ${(event as { step: number }).step}`);
  expect(named).toEqual(
    expect.arrayContaining(["start 0", "checkpoint 3", "evaluation 4", "checkpoint 6", "evaluation 6"]),
  );
  expect(new Set(named).size).toBe(named.length);
  expect(happened[0]).toMatchObject({ type: "start", output, step: 0, totalSteps: 6 });
  expect(happened.at(-1)).toMatchObject({ type: "end", how: "finished", step: 6 });
  const steps = happened.filter(({ type }) => type === "step");
  expect(steps.map((event) => (event as { step: number }).step)).toEqual([1, 2, 3, 4, 5, 6]);
  const judged = happened.filter((event) => event.type === "evaluation");
  expect(judged.at(-1)).toMatchObject({ loss: summary!.testLoss, accuracy: summary!.testAccuracy });

  // Leaving the loop stops the run. It has saved by then, and can resume with equal results.
  const early = train(job, { output: join(folder, "left") });
  for await (const event of early) if (event.type === "step" && event.step === 1) break;
  const { step, summary: none, checkpoint } = await early;
  expect(none).toBeUndefined();
  expect(step).toBeLessThan(6);
  expect(existsSync(checkpoint!)).toBe(true);
  await train(job, { output: join(folder, "left"), resume: true });
  expect(checkpointBytes(join(folder, "left"), 6)).toEqual(checkpointBytes(output, 6));
});

describe("a run is stopped and saved", () => {
  test("when a callback throws, which is reported with its location; it resumes once that is fixed", async () => {
    const output = join(folder, "run");
    const long = { ...job, steps: 4000, checkpoint: {}, evaluation: { batch: 16 } };
    await expect(train({ ...long, callbacks: callbacks({ throwsAt: 2 }) }, { output })).rejects.toThrow(
      /^the run was stopped, \S+step-0000\d+ was saved: callbacks\.file \S+: onStep: RangeError: no more of step 2 \(at \S+own-modules\.ts:\d+:\d+\); correct it there; then continue with: .*resume/,
    );
    const last = recordedEvents().at(-1)!;
    expect(last).toMatchObject({ type: "step", step: 2 }); // no callback is called after this event

    const stopped = await train({ ...long, callbacks: callbacks({ stopsAt: 300 }) }, { output, resume: true });
    expect(stopped.summary).toBeUndefined();
    expect(stopped.step).toBeGreaterThanOrEqual(300);
    expect(recordedEvents().at(-1)).toMatchObject({ type: "end", how: "stopped", step: stopped.step });

    const own = train(long, {
      output,
      resume: true,
      onStep: () => {
        throw new TypeError("of the program");
      },
    });
    await expect(own).rejects.toThrow(new TypeError("of the program"));
    expect(existsSync(join(output, "checkpoints"))).toBe(true);
  });
});
