import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ExpertsPlan } from "@skein/step/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { jobFolder, skeinTrain } from "./cli.ts";
import { runSoundly, settings, smallGptJob } from "./small-gpt.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

const job = (way: string): string[] =>
  settings([
    ...smallGptJob(8),
    `model={kind: gpt, layers: 2, heads: 2, width: 16, experts: {count: 4, every: 1, ${way}}}`,
    "ranks=2",
    "mesh.expert=2",
  ]);
const saved = (output: string, step: number, file: string): Buffer =>
  readFileSync(join(folder, output, `checkpoints/step-${String(step).padStart(8, "0")}`, file));
const savedPlanOf = (output: string, step: number): { readonly experts: ExpertsPlan; readonly basis: object } =>
  (JSON.parse(saved(output, step, "manifest.json").toString()) as { plan: ReturnType<typeof savedPlanOf> }).plan;
const planOf = (output: string, step: number): ExpertsPlan => savedPlanOf(output, step).experts;

test("token routing is planned, reported, kept, and the same as if the job had set it", { tags: "full" }, async () => {
  // With two chunks, dispatch methods differ in the order of sums. With little capacity the dense method, which is
  // never the default of a plan, is by far the fastest. A method other than the planned method would therefore change
  // the results.
  const planned = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--output",
    "planned",
    "--steps",
    "3",
    ...job("dispatch: auto, chunks: 2, backwardChunks: auto, capacity: 0.5"),
  );
  expect(planned.code, planned.stderr).toBe(0);
  expect(planned.stderr).toMatch(
    /^token dispatch to experts: [a-z-]+ in 2 chunks(?: and back in [148])?, the fastest of [12345] measured and 6 predicted choices; a layer takes .* ms \(predicted .* ms\)/m,
  );
  const plan = planOf("planned", 3);
  expect(plan.chunks).toBe(2);
  expect(savedPlanOf("planned", 3).basis).toMatchObject({ experts: { ranks: "2", mesh: '{"expert":2,"tensor":1}' } });

  const resumed = await skeinTrain(folder, "resume", "planned", "--steps", "5");
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumed.stderr).not.toContain("a layer takes");
  expect(planOf("planned", 5)).toEqual(plan);

  await runSoundly(
    folder,
    "run",
    "job.yaml",
    "--output",
    "named",
    "--steps",
    "5",
    ...job(`dispatch: ${plan.dispatch}, chunks: 2, backwardChunks: ${plan.backwardChunks ?? 2}, capacity: 0.5`),
  );
  for (const file of ["shared", "experts-0", "experts-1"].map((name) => `${name}.safetensors`))
    expect(saved("planned", 5, file)).toEqual(saved("named", 5, file));
});

test("chunks of both passes are planned for slot dispatch", { tags: "full" }, async () => {
  const args = ["--output", "apart", "--steps", "3", ...job("dispatch: dense, chunks: auto, backwardChunks: auto")];
  const planned = await skeinTrain(folder, "run", "job.yaml", ...args);
  expect(planned.code, planned.stderr).toBe(0);
  expect(planned.stderr).toMatch(
    /^token dispatch to experts: dense in .* measured and 16 predicted choices; a layer takes/m,
  );
  const { chunks, backwardChunks = chunks } = planOf("apart", 3);
  const named = job(`dispatch: dense, chunks: ${chunks}, backwardChunks: ${backwardChunks}`);
  await runSoundly(folder, "run", "job.yaml", "--output", "apart-named", "--steps", "3", ...named);
  for (const file of ["shared", "experts-0", "experts-1"].map((name) => `${name}.safetensors`))
    expect(saved("apart", 3, file)).toEqual(saved("apart-named", 3, file));
});

test("both are planned over levels, and planned again on another mesh", { tags: "full" }, async () => {
  const way = job("dispatch: auto, chunks: auto, capacity: all, gate: sigmoid");
  const levels = settings(["ranks=4", "mesh={expert: 4, expertLevels: [2, 2]}"]);
  await runSoundly(folder, "run", "job.yaml", "--output", "levels", "--steps", "3", ...way, ...levels);
  const other = await skeinTrain(
    folder,
    "resume",
    "levels",
    "--steps",
    "5",
    ...settings(["ranks=2", "mesh={expert: 2}"]),
  );
  expect(other.code, other.stderr).toBe(0);
  expect(other.stderr).toMatch(/token dispatch to experts: .* and 12 predicted/);
  expect(other.stderr).toContain("plan of token dispatch to experts is not used (ranks: 4, now 2); planning again");
});
