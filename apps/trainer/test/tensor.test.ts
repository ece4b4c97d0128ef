import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkpointFiles, jobFolder, metricLines, skeinTrain, stepLosses } from "./cli.ts";
import { expectCloseLosses } from "./run-ends.ts";
import { runSoundly, settings, smallGptJob } from "./small-gpt.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

const gpt = "model={kind: gpt, layers: 2, heads: 4, width: 16}";
const dropless =
  "model={kind: gpt, layers: 2, heads: 4, width: 16, experts: {count: 4, capacity: all, every: 2, gate: sigmoid}}";
const plain = smallGptJob(8).concat("replicas.checkEverySteps=2");
const steps = 8;
const longer = steps + 4;

const run = (...args: readonly string[]): Promise<void> => runSoundly(folder, ...args);
const train = (output: string, own: readonly string[], ...args: string[]): Promise<void> =>
  run("run", "job.yaml", "--output", output, "--steps", `${steps}`, ...settings([...plain, ...own]), ...args);
interface Ranks {
  readonly data?: number;
  readonly expert?: number;
  readonly tensor?: number;
}
const mesh = ({ data = 1, expert = 1, tensor = 1 }: Ranks): string[] => [
  `ranks=${data * expert * tensor}`,
  `mesh={data: ${data}, expert: ${expert}, tensor: ${tensor}}`,
];

/** Returns the checkpoint files of a run, without files that contain hashes of other files. */
const savedBy = (output: string, step = steps): ReturnType<typeof checkpointFiles> =>
  checkpointFiles(join(folder, output), step);
const expectClose = (output: string, other: string): void =>
  expectCloseLosses(join(folder, output), join(folder, other), 1e-3);
/**
 * Expects gradient norms close to the gradient norms of another run. Parameters alone would hide a difference if the
 * optimizer divides by the norm.
 */
const expectCloseNorms = (output: string, other: string): void => {
  const [norms, expected] = [output, other].map((name) =>
    metricLines(join(folder, name)).flatMap(({ type, gradientNorm }) =>
      type === "step" ? [Number(gradientNorm)] : [],
    ),
  );
  norms!.forEach((norm, i) => expect(norm / expected![i]!).toBeCloseTo(1, 3));
};
/** Returns the test loss of the last evaluation of a run. */
const testLossOf = (output: string): number =>
  Number(metricLines(join(folder, output)).findLast(({ type }) => type === "evaluation")!["loss"]);

describe("a GPT with tensor parallelism", () => {
  beforeAll(async () => {
    await train("one", [gpt, ...mesh({})]);
    await train("mesh", [gpt, ...mesh({ data: 2, tensor: 2 })]);
    await train("longer", [gpt, ...mesh({})], "--steps", `${longer}`);
  });

  test("gives the same result on a mesh as on one rank", () => {
    expectClose("mesh", "one");
    expect(stepLosses(join(folder, "mesh")).at(-1)).toBeLessThan(5.5);
    expect(Math.abs(testLossOf("mesh") - testLossOf("one"))).toBeLessThan(1e-3);
    expectCloseNorms("mesh", "one");
  });

  test("saves each part once", () => {
    expect(savedBy("mesh").map(([name]) => name)).toEqual(
      ["shared", "tensor-dim0-0", "tensor-dim0-1", "tensor-dim1-0", "tensor-dim1-1"].map(
        (name) => `${name}.safetensors`,
      ),
    );
    const bytes = (output: string): number => savedBy(output).reduce((sum, [, { length }]) => sum + length, 0);
    // Each file contains the same numbers plus a header.
    expect(bytes("mesh")).toBeLessThan(bytes("one") + 5 * 8192);
  });

  test("has the same bits over TCP, and when it was stopped and resumed", { tags: "full" }, async () => {
    await train("tcp", [gpt, ...mesh({ data: 2, tensor: 2 }), "transport=tcp"]);
    expect(savedBy("tcp")).toEqual(savedBy("mesh"));
    await train("halves", [gpt, ...mesh({ data: 2, tensor: 2 })], "--steps", "5");
    await run("resume", "halves", "--steps", `${steps}`);
    expect(savedBy("halves")).toEqual(savedBy("mesh"));
  });

  const goOn = async (from: string, ranks: Ranks): Promise<void> => {
    const output = `${from}-${Object.values(ranks).join("-")}`;
    cpSync(join(folder, from), join(folder, output), { recursive: true });
    await run("resume", output, "--steps", `${longer}`, ...settings(mesh(ranks)));
    expectClose(output, "longer");
  };

  test("resumes on another mesh from a checkpoint of this one, and on this one from that of one rank", async () => {
    await goOn("mesh", { tensor: 4 });
    await goOn("one", { tensor: 2 });
  });

  test("and on ranks without sharding", { tags: "full" }, async () => {
    await goOn("mesh", { data: 2 });
    await goOn("mesh", { data: 1 });
  });
});

describe("with experts too", () => {
  beforeAll(async () => {
    await train("experts-one", [dropless, ...mesh({})]);
    await train("experts-mesh", [dropless, ...mesh({ expert: 2, tensor: 2 })]);
  });

  test("gives the same result on a mesh as on one rank", () => {
    expectClose("experts-mesh", "experts-one");
    const loads = metricLines(join(folder, "experts-mesh"))
      .filter(({ type }) => type === "step")
      .map((line) => [0, 1, 2, 3].reduce((sum, expert) => sum + Number(line[`block-1.load_E.${expert}` as never]), 0));
    expect(loads).toEqual(Array.from({ length: steps }, () => 2 * 8 * 16)); // each choice of a token counts once
    expect(Math.abs(testLossOf("experts-mesh") - testLossOf("experts-one"))).toBeLessThan(1e-3);
  });

  test("resumes on another mesh from a checkpoint of this one", { tags: "full" }, async () => {
    await train("experts-longer", [dropless, ...mesh({})], "--steps", `${longer}`);
    for (const ranks of [{ expert: 4 }, { data: 2, tensor: 2 }, { data: 1 }]) {
      const output = `experts-mesh-${Object.values(ranks).join("-")}`;
      cpSync(join(folder, "experts-mesh"), join(folder, output), { recursive: true });
      await run("resume", output, "--steps", `${longer}`, ...settings(mesh(ranks)));
      expectClose(output, "experts-longer");
    }
  });

  test("trains on eight ranks, two along each axis", { tags: "full" }, async () => {
    await train("experts-eight", [dropless, ...mesh({ data: 2, expert: 2, tensor: 2 })]);
    expectClose("experts-eight", "experts-one");
  });

  describe("with tensor parallelism within each expert", () => {
    const sharded = (shards: string, more = ""): string =>
      dropless.replace("count: 4,", `count: 4, shards: ${shards},${more}`);
    beforeAll(async () => {
      const own = [sharded("split-before-gate", " dispatch: duplicate-free,"), ...mesh({ expert: 2, tensor: 2 })];
      await train("shards", own, "--steps", "5");
    });

    test("saves each part once", () => {
      const parts = [0, 1].flatMap((expert) =>
        [1, 2].flatMap((dim) => [0, 1].map((tensor) => `experts-${expert}-tensor-dim${dim}-${tensor}`)),
      );
      const others = ["shared", "tensor-dim0-0", "tensor-dim0-1", "tensor-dim1-0", "tensor-dim1-1"];
      expect(savedBy("shards", 5).map(([name]) => name)).toEqual(
        [...parts, ...others].map((name) => `${name}.safetensors`).toSorted(),
      );
    });

    test("gives the result of one rank, and resumes on another mesh, split after the gate", async () => {
      await run(
        "resume",
        "shards",
        "--steps",
        `${steps}`,
        ...settings([sharded("split-after-gate", " chunks: 2,"), ...mesh({ tensor: 2 })]),
      );
      expectClose("shards", "experts-one");
      expectCloseNorms("shards", "experts-one");
      expect(Math.abs(testLossOf("shards") - testLossOf("experts-one"))).toBeLessThan(1e-3);
      const loads = metricLines(join(folder, "shards"))
        .filter(({ type }) => type === "step")
        .map((line) =>
          [0, 1, 2, 3].reduce((sum, expert) => sum + Number(line[`block-1.load_E.${expert}` as never]), 0),
        );
      expect(loads).toEqual(Array.from({ length: steps }, () => 2 * 8 * 16)); // each choice of a token counts once
    });

    test.each([
      ["split-before-gate", { data: 2, tensor: 2 }, ["zero=1"]],
      ["split-before-gate", { data: 2, expert: 2, tensor: 2 }, []],
      ["split-after-gate", { expert: 2, tensor: 2 }, []],
      ["split-after-gate", { expert: 2, tensor: 2 }, ["precision={kind: mixed-f16}"]],
      ["split-after-gate", { data: 2, expert: 2, tensor: 2 }, ["zero=1"]],
      ["baseline", { expert: 2, tensor: 2 }, ["memory={recompute: blocks}"]],
      ["baseline", { data: 2, tensor: 2 }, []],
    ] as const)(
      "%s on %j with %j gives the result of one rank, and resumes on one",
      { tags: "full" },
      async (shards, ranks, own) => {
        const output = `shards-${shards}-${Object.values(ranks).join("-")}-${own.length}`;
        await train(output, [sharded(shards), ...own, ...mesh(ranks)], "--steps", "5");
        await run("resume", output, "--steps", `${steps}`, ...settings([dropless, "zero=0", ...mesh({ data: 1 })]));
        if (own[0]?.startsWith("precision") !== true) expectClose(output, "experts-one");
      },
    );

    test("experts that move take their shards with them", { tags: "full" }, async () => {
      const moving = sharded("split-before-gate", " placement: {everySteps: 2, planner: swap}, dispatch: ragged,");
      const values = [...plain, moving, ...mesh({ expert: 2, tensor: 2 })];
      const args = ["run", "job.yaml", "--output", "shards-moving", "--steps", `${steps}`, ...settings(values)];
      const { code, stderr } = await skeinTrain(folder, ...args);
      expect(code, stderr).toBe(0);
      expectClose("shards-moving", "experts-one");
      const lines = metricLines(join(folder, "shards-moving"));
      expect(lines.some(({ type }) => type === "placement")).toBe(true);
    });

    test("by measurements, which a resumed run keeps", { tags: "full" }, async () => {
      const args = (output: string) => ["--output", output, "--steps", "5", ...settings(values)];
      const values = [...plain, sharded("auto"), ...mesh({ expert: 2, tensor: 2 })];
      const begun = await skeinTrain(folder, "run", "job.yaml", ...args("shards-auto"));
      expect(begun.code, begun.stderr).toBe(0);
      const told = /experts are sharded by (\S+); expected time of a pass through a layer: (.*)/;
      expect(begun.stderr).toMatch(told);
      for (const name of ["split-before-gate", "split-after-gate", "baseline"])
        expect(told.exec(begun.stderr)![2]).toMatch(new RegExp(`${name} [\\d.]+ ms`));
      const again = await skeinTrain(folder, "resume", "shards-auto", "--steps", `${steps}`);
      expect(again.code, again.stderr).toBe(0);
      expect(again.stderr).not.toMatch(told);
      expectClose("shards-auto", "experts-one");
    });
  });
});

test.each([
  ["dear", ["overlap=dear"]],
  ["dropout", ["model={kind: gpt, layers: 1, heads: 2, width: 16, dropout: 0.2}"]],
  ["recompute", ["memory={recompute: blocks}"]],
  ["mixed-f16", ["precision={kind: mixed-f16}"]],
  ["top-k", ["compression={kind: top-k, density: 0.1}", "optimizer={kind: sgd}"]],
  ["power-sgd", ["compression={kind: power-sgd, rank: 2}"]],
  ["planned buckets", ["buckets={kind: mg-wfbp}"]],
  ["tuned buckets", ["buckets={kind: tuned}"]],
])("with %s it trains, with equal replicas", { tags: "full" }, async (name, own) => {
  const output = `full-${name.replace(" ", "-")}`;
  await train(output, [gpt, ...own, ...mesh({ data: 2, tensor: 2 })]);
  const losses = stepLosses(join(folder, output));
  expect(losses.at(-1)).toBeLessThan(losses[0]!);
});

test("dropout along the axis drops the same elements as without it", { tags: "full" }, async () => {
  const dropping = "model={kind: gpt, layers: 1, heads: 2, width: 16, dropout: 0.2}";
  await train("drop-data", [dropping, ...mesh({ data: 2 })]);
  await train("drop-mesh", [dropping, ...mesh({ data: 2, tensor: 2 })]);
  expectClose("drop-mesh", "drop-data");
});
