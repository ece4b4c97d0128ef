import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkpointBytes, jobFolder, skeinTrain, start, stepLosses } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const job = (name: string, settings = "") => `name: ${name}
backend: cpu
batch: 32
steps: 4
data: { kind: mnist, trainSamples: 320, testSamples: 50 }
model: { kind: mlp, hidden: [8] }
optimizer: { kind: sgd }
learningRate: { peak: ${name === "diverges" ? "1e38" : 0.1} }
${settings}`;

const write = (...jobs: readonly string[]): void => writeFileSync(join(folder, "all.yaml"), jobs.join("---\n"));

test("the jobs of a file run one after another; one that fails does not prevent the others", async () => {
  write(job("diverges"), job("first", "labelSmoothing: 0.1\n"), job("lost", "freeze: [nothing]\n"), job("last"));
  const { code, stdout, stderr } = await skeinTrain(folder, "run", "all.yaml", "--output", "all", "--set", "seed=7");
  // the exit code of the first failed job
  expect(code).toBe(2);
  expect(stderr).toContain("diverges: rank 0: step 2: the loss is not finite");
  expect(stderr).toContain('lost: freeze[0]: "nothing" matches none of the model\'s 4 parameters');
  const table = stdout.split("\n").slice(-6, -1);
  const [, loss] = /^test loss +(\S+) nats$/m.exec(stdout)!;
  expect(table[0]).toMatch(/^job +held-out loss +accuracy +took +state$/);
  expect(table[1]).toMatch(/^diverges +– +– +\S+ \S+ +failed: .*not finite/);
  expect(table[2]).toMatch(new RegExp(`^first +${loss!.slice(0, 4)}\\d* .* finished$`));
  expect(table[3]).toMatch(/^lost +– .* failed: freeze/);
  expect(table[4]).toMatch(/^last +\d\.\d+ .* finished$/);
  expect(existsSync(join(folder, "all", "lost"))).toBe(false);
  expect(stepLosses(join(folder, "all", "last"))).toHaveLength(4);
  expect(stepLosses(join(folder, "all", "first"))[0]).not.toBe(stepLosses(join(folder, "all", "last"))[0]);
});

test("give the results of separate runs; a stop ends all, and the same command resumes", { tags: "full" }, async () => {
  write(job("first"), job("long", "checkpoint: { everySteps: 50 }\n").replace("steps: 4", "steps: 2000"), job("last"));
  const args = ["run", "all.yaml", "--output", "all", "--resume-if-possible"];
  const running = start(folder, ...args);
  while (!existsSync(join(folder, "all", "long", "checkpoints", "step-00000050", "manifest.json")))
    await new Promise((resolve) => setTimeout(resolve, 20));
  running.child.kill("SIGINT");
  const stopped = await running.ended;
  expect(stopped.code).toBe(130);
  expect(stopped.stdout).toMatch(/\nlong +– +– .* stopped\nlast +– +– +– +not begun\n$/);
  const { code, stdout } = await skeinTrain(folder, ...args, "--json");
  const lines = stdout.trimEnd().split("\n");
  expect([code, lines.map((line) => (JSON.parse(line) as { job: string }).job)]).toEqual([
    0,
    ["first", "long", "last"],
  ]);
  writeFileSync(join(folder, "alone.yaml"), job("long").replace("steps: 4", "steps: 2000"));
  expect((await skeinTrain(folder, "run", "alone.yaml", "--output", "alone")).code).toBe(0);
  expect(checkpointBytes(join(folder, "all", "long"), 2000)).toEqual(checkpointBytes(join(folder, "alone"), 2000));
});

test("errors in any of them are reported before the first one runs", async () => {
  const refused = async (text: string, ...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await skeinTrain(folder, "run", "all.yaml", ...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
  };
  write(job("first"), job("second", "stpes: 3\n"));
  await refused('all.yaml:18:1: unknown key "stpes"; did you mean "steps"?');
  write(job("same"), job("same"));
  await refused("name: two of the 2 jobs of the file have the name same");
  write(job("first"), job("second"));
  await refused("--trace t.json: a trace file is for one run", "--trace", "t.json");
  await refused("all.yaml: the file holds 2 jobs, and only run takes several", "--overfit", "1");
  expect(await skeinTrain(folder, "validate", "all.yaml")).toMatchObject({
    code: 0,
    stdout: "all.yaml: valid, 2 jobs\n",
  });
});
