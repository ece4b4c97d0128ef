import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openJob } from "../src/profiling.ts";
import { jobFolder, metricLines, skeinTrain, stepLosses } from "./cli.ts";
import { expectCloseLosses } from "./run-ends.ts";
import { runSoundly, settings, smallGptJob } from "./small-gpt.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

const numExperts = 4;
const gptOf = (experts: string): string =>
  `model={kind: gpt, layers: 2, heads: 2, width: 16, experts: {count: ${numExperts}, ${experts}}}`;
/**
 * Model without dropped tokens and without noise, so that results do not depend on the assignment of tokens to ranks.
 */
const dropless = gptOf("capacity: all, every: 1, gate: sigmoid");
/** Model of a job on two hosts with two ranks each, which sends each token once per host, in two chunks. */
const overLevels = gptOf("capacity: all, every: 1, gate: sigmoid, dispatch: duplicate-free, chunks: 2");
const plain = smallGptJob(8);
const steps = 8;

const train = (output: string, own: readonly string[], ...args: string[]): Promise<void> =>
  runSoundly(
    folder,
    "run",
    "job.yaml",
    "--output",
    output,
    "--steps",
    `${steps}`,
    ...settings([...plain, ...own]),
    ...args,
  );
const twoLevels = ["ranks=4", "mesh={expert: 4, expertLevels: [2, 2]}"];
const mesh = (ranks: number, expert: number): string[] => [`ranks=${ranks}`, `mesh.expert=${expert}`];

const savedBy = (output: string, step = steps, parts = ["shared", "experts-0", "experts-1"]): Buffer[] =>
  parts.map((name) =>
    readFileSync(join(folder, output, `checkpoints/step-${String(step).padStart(8, "0")}/${name}.safetensors`)),
  );
const expectClose = (output: string, other: string): void =>
  expectCloseLosses(join(folder, output), join(folder, other), 1e-3);

describe("a GPT with experts", () => {
  beforeAll(async () => {
    await train("one", [dropless, ...mesh(1, 1)]);
    await train("mesh", [dropless, ...mesh(4, 2)]);
  });

  test("that fills idle time of expert layers with gradients has the same bits, and keeps the plan", {
    tags: "full",
  }, async () => {
    const own = [dropless, ...mesh(4, 2), "buckets={kind: moe-idle, profileSteps: 2}"];
    const args = ["--output", "idle", "--steps", `${steps}`, ...settings([...plain, ...own])];
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", ...args);
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/20 gradients in \d+ buckets next to 2 layers of experts; an all-reduce takes .* exposed/);
    expect(savedBy("idle")).toEqual(savedBy("mesh"));
    const manifest = join(folder, "idle/checkpoints", `step-${String(steps).padStart(8, "0")}`, "manifest.json");
    const { plan } = JSON.parse(readFileSync(manifest, "utf8")) as { plan: { buckets: string[][] } };
    expect(plan.buckets.flat()).toHaveLength(20);
    const isExpert = (path: string): boolean => path.includes(".experts.experts.");
    for (const bucket of plan.buckets) expect(new Set(bucket.map(isExpert)).size).toBe(1);
  });

  test("gives the same result with measured merging of gradients, where experts' gradients are not exchanged", {
    tags: "full",
  }, async () => {
    await train("alone", [dropless, ...mesh(2, 2), "buckets={kind: mg-wfbp, profileSteps: 2}"]);
    expectClose("alone", "one");
    const manifest = join(folder, "alone/checkpoints", `step-${String(steps).padStart(8, "0")}`, "manifest.json");
    const { plan } = JSON.parse(readFileSync(manifest, "utf8")) as { plan: { buckets: string[][] } };
    const alone = plan.buckets.filter((bucket) => bucket.some((path) => path.includes(".experts.experts.")));
    expect(plan.buckets.flat()).toHaveLength(20);
    expect(alone.map(({ length }) => length)).toEqual([1, 1, 1, 1]);
  });

  test("gives the same result on a mesh as on one rank", () => {
    expectClose("mesh", "one");
    expect(stepLosses(join(folder, "mesh")).at(-1)).toBeLessThan(5.5);
    const evaluations = ["mesh", "one"].map((output) =>
      metricLines(join(folder, output)).filter(({ type }) => type === "evaluation"),
    );
    expect(evaluations[0]).toHaveLength(1);
    expect(Math.abs(Number(evaluations[0]![0]!["loss"]) - Number(evaluations[1]![0]!["loss"]))).toBeLessThan(1e-3);
  });

  test("gives the same result where tokens are exchanged over levels", { tags: "full" }, async () => {
    await train("levels", [overLevels, ...twoLevels]);
    expectClose("levels", "one");
  });

  test("reports loads, drops and entropy of each layer", () => {
    const lines = metricLines(join(folder, "mesh")).filter(({ type }) => type === "step") as unknown as readonly Record<
      string,
      number
    >[];
    for (const line of lines) {
      expect(line["exposedAllToAllSeconds"]).toBeGreaterThan(0);
      expect(line["exposedAllToAllSeconds"]).toBeLessThanOrEqual(line["exposedSeconds"]!);
      for (const block of [0, 1]) {
        const loads = Array.from({ length: numExperts }, (_, expert) =>
          Number(line[`block-${block}.load_E.${expert}`]),
        );
        expect(loads.reduce((sum, load) => sum + load, 0)).toBe(2 * 8 * 16); // choices of all tokens on all ranks
        expect(line[`block-${block}.droppedShare`]).toBe(0);
        expect(Number(line[`block-${block}.entropy`])).toBeLessThanOrEqual(Math.log(numExperts) + 1e-5);
        expect(Number(line[`block-${block}.auxiliaryLoss`])).toBeGreaterThan(0);
      }
    }
  });

  test("shows its routing on a page", async () => {
    const { code, stdout } = await skeinTrain(folder, "report", "mesh");
    expect([code, stdout]).toEqual([0, "written to mesh/report.html\n"]);
    const page = readFileSync(join(folder, "mesh/report.html"), "utf8");
    for (const block of [0, 1]) expect(page).toContain(`block-${block}: the busiest of ${numExperts} experts has `);
    expect((await skeinTrain(folder, "report", "nowhere")).stderr).toMatch(/nowhere holds no run/);
  });

  test("has the same bits over TCP, and when it was stopped and resumed", { tags: "full" }, async () => {
    await train("tcp", [dropless, ...mesh(4, 2), "transport=tcp"]);
    expect(savedBy("tcp")).toEqual(savedBy("mesh"));
    await train("halves", [dropless, ...mesh(4, 2)], "--steps", "5");
    expect((await skeinTrain(folder, "resume", "halves", "--steps", `${steps}`)).code).toBe(0);
    expect(savedBy("halves")).toEqual(savedBy("mesh"));
  });

  const usesKeyValueCache = async (ranks: number, expert: number): Promise<void> => {
    const output = `from-mesh-${ranks}-${expert}`;
    cpSync(join(folder, "mesh"), join(folder, output), { recursive: true });
    const args = ["--steps", `${steps + 4}`, ...settings(mesh(ranks, expert))];
    await runSoundly(folder, "resume", output, ...args);
    expectClose(output, "longer");
  };
  describe("resumes on another mesh from a checkpoint of this one", () => {
    beforeAll(() => train("longer", [dropless, ...mesh(4, 2)], "--steps", `${steps + 4}`));
    test("of one rank", () => usesKeyValueCache(1, 1));
    test.each([
      [4, 4],
      [2, 1],
    ])("of %i ranks, %i along expert", { tags: "full" }, usesKeyValueCache);
  });
});

test.each([
  ["dense", mesh(4, 2)],
  ["ragged", mesh(4, 2)],
  ["duplicate-free", twoLevels],
] as const)("tokens exchanged by %s wait for no gradients", async (dispatch, on) => {
  const job = await openJob(join(folder, "job.yaml"), { set: [...plain, gptOf(`dispatch: ${dispatch}`), ...on] });
  const starts = job.step().graph.nodes.filter(({ op }) => op === "collective-start");
  const priorities = (scope: RegExp): number[] =>
    starts.filter((node) => scope.test(node.scope)).map(({ params }) => Number(params["priority"] ?? 0));
  const [tokens, gradients] = [priorities(/\/(dispatch|combine)/), priorities(/exchange-/)];
  expect(gradients.length).toBeGreaterThan(0);
  expect(tokens.length).toBeGreaterThan(3);
  expect(Math.min(...tokens)).toBeGreaterThan(Math.max(...gradients));
});

test.each([
  ["hierarchical", "dispatch: hierarchical, chunks: 2", twoLevels],
  ["one-level", "dispatch: duplicate-free", mesh(4, 4)],
  ["replicas", "dispatch: duplicate-free", ["ranks=4", "mesh={expert: 2, expertLevels: [2, 1]}"]],
  ["ragged", "dispatch: ragged, chunks: 3", mesh(4, 2)],
  ["apart", "dispatch: dense, chunks: 2, backwardChunks: 3", mesh(4, 2)],
] as const)(
  "tokens exchanged by %s give the result of exchanging all slots",
  { tags: "full" },
  async (name, way, on) => {
    const model = (own: string): string => gptOf(`capacity: all, every: 1, gate: sigmoid, ${own}`);
    await train(`way-${name}`, [model(way), ...on]);
    await train(`way-${name}-slots`, [model("dispatch: dense"), ...on]);
    expectClose(`way-${name}`, `way-${name}-slots`);
  },
);

test("tokens exchanged over levels have the same bits over TCP", { tags: "full" }, async () => {
  const parts = ["shared", "experts-0", "experts-1", "experts-2", "experts-3"];
  await train("levels-threads", [overLevels, ...twoLevels]);
  await train("levels-tcp", [overLevels, ...twoLevels, "transport=tcp"]);
  expect(savedBy("levels-tcp", steps, parts)).toEqual(savedBy("levels-threads", steps, parts));
});

test.each([
  ["switch", "topK: 1, gate: switch, dispatch: ragged"],
  ["sigmoid", "gate: sigmoid, normalisation: before-dropping, shared: true"],
  ["cosine", "gate: cosine, activation: swiglu"],
  ["balancing-bias", "gate: balancing-bias, balanceLoss: 0, zLoss: 0.001"],
  ["sinkhorn", "gate: sinkhorn"],
])("with the gate %s, too, four ranks give the result of one", { tags: "full" }, async (name, experts) => {
  const model = gptOf(`capacity: all, ${experts}`);
  await train(`${name}-one`, [model, ...mesh(1, 1)]);
  await train(`${name}-mesh`, [model, ...mesh(4, 2)]);
  expectClose(`${name}-mesh`, `${name}-one`);
});

test.each([
  ["expert-choice", "gate: expert-choice"],
  ["soft", "gate: soft"],
  ["dropping", "capacity: 0.6, dropOrder: probability, importanceLoadLoss: 0.1"],
  ["dropping-by-chance", "capacity: 0.6, dropOrder: chance"],
])("%s trains on a mesh, with split all-reduces too", { tags: "full" }, async (name, experts) => {
  for (const overlap of ["wait-free", "dear"]) {
    await train(`${name}-${overlap}`, [gptOf(experts), ...mesh(4, 2), `overlap=${overlap}`]);
    const losses = stepLosses(join(folder, `${name}-${overlap}`));
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
  }
});

test("reports that a gate sees later tokens", async () => {
  const args = ["run", "job.yaml", "--output", "soft", "--steps", "1", ...settings([...plain, gptOf("gate: soft")])];
  const { code, stderr } = await skeinTrain(folder, ...args);
  expect(stderr).toMatch(/with soft later tokens influence the prediction of earlier ones/);
  expect(code).toBe(0);
});
