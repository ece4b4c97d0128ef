import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { jobFolder, skeinTrain } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

interface Found {
  readonly batch: number;
  readonly maxBytes: number;
  readonly tries: readonly {
    readonly batch: number;
    readonly plannedBytes: number;
    readonly secondsPerSample?: number;
    readonly refused?: string;
  }[];
}

const foundIn = (name: string): Found => JSON.parse(readFileSync(join(folder, name), "utf8")) as Found;
/** Options with few samples, so that few batch sizes are tried. */
const few = ["--set", "data.trainSamples=8", "--ranks", "1"];
const left = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("skein-find-batch-"));

test("batch sizes double while they fit; the chosen one was tried with real steps, and nothing is left behind", {
  tags: "full",
}, async () => {
  const before = left();
  const { code, stdout } = await skeinTrain(folder, "find-batch", "job.yaml", ...few, "--output", "batches.json");
  expect(code).toBe(0);
  const { batch, tries } = foundIn("batches.json");
  const [first] = tries;
  tries.forEach((one, i) => expect(one.batch).toBe(first!.batch * 2 ** i));
  expect(tries.find((one) => one.batch === batch)!.secondsPerSample).toBeGreaterThan(0);
  expect(stdout).toContain(`suggested  --set batch=${batch}\n`);
  expect(readdirSync(folder).sort()).toEqual(["batches.json", "job.yaml"]);
  expect(left()).toEqual(before);
  // A limit between the planned bytes of the last two batch sizes, so that the smaller batch fits.
  const bytes = Math.floor((tries.at(-2)!.plannedBytes + tries.at(-1)!.plannedBytes) / 2);
  const bound = ["--memory", `${bytes}`, "--output", "bounded.json"];
  await skeinTrain(folder, "find-batch", "job.yaml", ...few, ...bound);
  const bounded = foundIn("bounded.json");
  expect(bounded.maxBytes).toBe(bytes);
  expect(bounded.tries.at(-1)!.refused).toMatch(/^more than .*, --memory$/);
  for (const one of bounded.tries) expect(one.plannedBytes <= bytes).toBe(one.refused === undefined);
});

test("a run stores the batch size that it found as a number, and resumes with it", async () => {
  const run = ["run", "job.yaml", ...few, "--find-batch", "--steps", "2", "--output", "out"];
  const begun = await skeinTrain(folder, ...run);
  const [, batch] = /^batch (\d+): .* a sample, .* planned of /m.exec(begun.stderr)!;
  const saved = JSON.parse(readFileSync(join(folder, "out/job.json"), "utf8")) as Record<string, unknown>;
  expect(saved["batch"]).toBe(Number(batch));
  const { stderr, code } = await skeinTrain(folder, ...run, "--resume-if-possible");
  expect(stderr).toContain(`batch ${batch}, as at the start of the run in out`);
  expect(code).toBe(0);
});

test.each([
  [
    ["find-batch", "job.yaml", "--memory", "1KiB"],
    /^no batch can be trained with: a batch of \d+ is refused: more than 1.00 KiB/m,
  ],
  [["find-batch", "job.yaml", "--memory", "2GB"], /^--memory is "2GB", but must be bytes above 0, such as 2GiB/],
  [["run", "job.yaml", "--memory", "2GiB"], /^--memory is the memory limit of --find-batch; give/],
  [["run", "job.yaml", "--find-batch", "--dry-run"], /^--dry-run runs no step, but --find-batch needs steps/],
  [["run", "job.yaml", "--find-batch", "--overfit", "1"], /^--find-batch and --overfit: /],
])("refuses %s", { tags: "full" }, async (args, line) => {
  const { stderr, code } = await skeinTrain(folder, ...args);
  expect(stderr).toMatch(line);
  expect(code).toBe(2);
  expect(existsSync(join(folder, "runs"))).toBe(false);
});
