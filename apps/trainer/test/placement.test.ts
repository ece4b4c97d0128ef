import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newestCheckpoint, readPart } from "@skein/checkpoints/node";
import { nodeFiles } from "@skein/cli/node";
import { MetricFiles } from "@skein/run-files/node";
import { savedPlan } from "@skein/step/node";
import { parse } from "yaml";
import {
  expertCounts,
  replayRoutings,
  routingRecordFromJson,
  type RoutingRecordJson,
} from "@skein/moe-parallel/routing";
import type { NdArray } from "@skein/tensor-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readJob } from "../src/job-file/load-job.ts";
import { Interruption } from "../src/processes/interruption.ts";
import { runWithRestarts } from "../src/controller/run-with-restarts.ts";
import { threadRunner } from "../src/controller/thread-runner.ts";
import { prepare } from "../src/preparation/prepare.ts";
import {
  checkpointBytes,
  childrenOf,
  disturbed,
  hasGoneOn,
  jobFolder,
  metricLines,
  skeinTrain,
  start,
  stepLosses,
  until,
} from "./cli.ts";
import { faultyRank, type RankFault } from "./faulty-rank.ts";
import { expectSameEnd } from "./run-ends.ts";

let folder: string;
let remove: () => void;
beforeAll(() => {
  ({ folder, remove } = jobFolder());
  writeFileSync(join(folder, "job.yaml"), jobFile);
});
afterAll(() => remove());

const [numExperts, steps] = [8, 8];

/**
 * A job on data 2 × expert 2, with eight experts in each of two blocks, whose placement is planned again after every
 * second step.
 */
const jobFile = `name: placed
seed: 3
ranks: 4
mesh: { expert: 2 }
backend: cpu
batch: 8
steps: ${steps}
data: { kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30 }
model:
  kind: gpt
  layers: 2
  heads: 2
  width: 16
  experts: { count: ${numExperts}, capacity: all, every: 1, gate: sigmoid, dispatch: ragged, placement: { everySteps: 2 }, recordRouting: { everySteps: 2, keep: 3 } }
optimizer: { kind: adamw }
learningRate: { peak: 0.01, warmupSteps: 3 }
compression: { kind: identity }
evaluation: { batch: 8 }
checkpoint: { everySteps: 3, keep: 10 }
`;

const from = (path: string, value: unknown): { path: string[]; value: unknown; origin: string } => ({
  path: path.split("."),
  value,
  origin: "test",
});

/**
 * Runs the job on threads of this process, from the newest checkpoint of `resumed` if given.
 * @returns the printed notes.
 */
const run = async (
  output: string,
  settings: Readonly<Record<string, unknown>> = {},
  fault?: Omit<RankFault, "mark">,
  resumed?: string,
): Promise<string[]> => {
  const job = readJob(
    join(folder, "job.yaml"),
    Object.entries(settings).map(([path, value]) => from(path, value)),
  );
  const to = join(folder, output);
  mkdirSync(to);
  const notes: string[] = [];
  const resume = resumed === undefined ? undefined : newestCheckpoint(nodeFiles, join(folder, resumed), expect.fail);
  const metrics = new MetricFiles(to, resume?.manifest.step ?? 0);
  const mark = join(folder, `${output}-fault`);
  try {
    await runWithRestarts({
      prepared: await prepare(job),
      output: to,
      resume,
      runner: threadRunner(fault && faultyRank({ ...fault, mark })),
      interruption: new Interruption(),
      metrics,
      progress: { update: () => undefined, note: (line: string) => void notes.push(line), close: () => undefined },
    });
  } finally {
    metrics.close();
  }
  expect(existsSync(mark)).toBe(fault !== undefined);
  return notes;
};

interface MoveLine {
  readonly step: number;
  readonly layer: string;
  readonly moves: number;
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  readonly gainSeconds?: number;
  readonly seconds: number;
}

const movesOf = (output: string): MoveLine[] =>
  metricLines(join(folder, output)).filter(({ type }) => (type as string) === "placement") as unknown as MoveLine[];

const tensorsOf = (output: string, name: string, step = steps): ReadonlyMap<string, NdArray> => {
  const at = join(folder, output, "checkpoints", `step-${String(step).padStart(8, "0")}`);
  const manifest = JSON.parse(readFileSync(join(at, "manifest.json"), "utf8")) as {
    readonly files: Parameters<typeof readPart>[2][];
  };
  return readPart(nodeFiles, at, manifest.files.find((file) => file.name === `${name}.safetensors`)!);
};

/** Returns parameters and moments of each expert over all ranks, wherever the expert is stored. */
const byExpert = (output: string, numParts: number): Record<string, number[][]> => {
  const shared = tensorsOf(output, "shared");
  const parts = Array.from({ length: numParts }, (_, part) => tensorsOf(output, `experts-${part}`));
  return Object.fromEntries(
    [...parts[0]!.keys()].map((path) => {
      const block = Number(/blocks\.(\d+)\./.exec(path)![1]);
      const numbers = parts.flatMap((part) => part.get(path)!.toNumbers());
      const each = numbers.length / numExperts;
      const places = shared.get(`model.experts.${block}.own.placeOf_E`)!.toNumbers();
      return [path, places.map((place) => numbers.slice(place * each, (place + 1) * each))];
    }),
  );
};

const still = { "model.experts.placement": { everySteps: 1000 } };

describe("experts that move between ranks while a GPT trains", () => {
  beforeAll(async () => {
    await run("placed");
    await run("still", still);
  });

  test("change no bit of the result, and take their moments along", () => {
    expect(stepLosses(join(folder, "placed"))).toEqual(stepLosses(join(folder, "still")));
    expect(movesOf("still")).toEqual([]);
    const [places, inOrder] = ["placed", "still"].map((output) =>
      [0, 1].map((block) => tensorsOf(output, "shared").get(`model.experts.${block}.own.placeOf_E`)!.toNumbers()),
    );
    expect(places).not.toEqual(inOrder);
    const [got, wanted] = [byExpert("placed", 2), byExpert("still", 2)];
    expect(Object.keys(got).filter((path) => path.startsWith("optimizer."))).toHaveLength(8);
    expect(got).toEqual(wanted);
  });

  test("change no token's choice; the choices of the last recorded steps are available for replay", () => {
    const [routings, others] = ["placed", "still"].map((output) => readFileSync(join(folder, output, "routing.json")));
    expect(routings).toEqual(others);
    const records = JSON.parse(routings!.toString()) as Readonly<Record<string, RoutingRecordJson>>;
    expect(Object.keys(records)).toEqual(["block-0", "block-1"]);
    for (const record of Object.values(records)) {
      const replayed = [...replayRoutings(routingRecordFromJson(record))];
      expect(replayed.map(({ step }) => step)).toEqual([4, 6, 8]);
      for (const { routing } of replayed) {
        const counts = expertCounts(routing);
        expect(counts).toHaveLength(numExperts);
        expect(counts.reduce((sum, count) => sum + count)).toBe(2 * 8 * 16); // choices of all tokens on all ranks
        expect(Math.max(...counts)).toBeGreaterThan(Math.min(...counts));
      }
    }
  });

  test("are reported, with loads that even out", () => {
    const moves = movesOf("placed");
    expect(moves.length).toBeGreaterThan(1);
    for (const { step, layer, moves: numMoves, busiestBefore, busiestAfter, seconds } of moves) {
      expect(step % 2).toBe(0);
      expect(layer).toMatch(/^block-[01]$/);
      expect(numMoves).toBeGreaterThan(0);
      expect(numMoves % 2).toBe(0); // ranks hold equally many: each expert that leaves is replaced by another
      expect(busiestAfter).toBeLessThan(busiestBefore);
      expect(busiestAfter).toBeGreaterThanOrEqual(1);
      expect(seconds).toBeGreaterThan(0);
    }
  });

  const recordedMoves = (output: string): object[] => movesOf(output).map(({ seconds: _, ...line }) => line);

  const expectResumes = async (kind: "end" | "end-amid-moves", step: number): Promise<void> => {
    const notes = await run(kind, {}, { kind, rank: 1, step });
    expect(notes.filter((line) => line.includes("(restart 1 of 3)"))).toHaveLength(1);
    expectSameEnd(join(folder, kind), join(folder, "placed"), steps);
    expect(recordedMoves(kind)).toEqual(recordedMoves("placed"));
    expect(readFileSync(join(folder, kind, "routing.json"))).toEqual(
      readFileSync(join(folder, "placed", "routing.json")),
    );
  };

  test("resume to the same bits after a rank was killed during their moves", { tags: "full" }, async () => {
    expect(movesOf("placed").filter(({ step }) => step === 4)).toHaveLength(2); // one layer has moved, one has not
    await expectResumes("end-amid-moves", 4);
  });

  test("resume to the same bits after a rank was killed between two moves", { tags: "full" }, () =>
    expectResumes("end", 8),
  );

  test("resume to the same bits over TCP after a process was killed", { tags: "full" }, async () => {
    const args = ["--set", "transport=tcp", "--set", "checkpoint.everySteps=1"];
    const running = start(folder, "run", "job.yaml", "--output", "tcp", ...args);
    await until(running, () => running.stderr().includes("step 4: block-"));
    process.kill(childrenOf(running.child.pid!)[1]!, "SIGKILL");
    const { code, stderr } = await disturbed(running, hasGoneOn);
    expect(code).toBe(0);
    expect(stderr).toMatch(/going on from tcp\/checkpoints\/step-0000000\d \(restart 1 of 3\)/);
    expect(checkpointBytes(join(folder, "tcp"), steps)).toEqual(checkpointBytes(join(folder, "placed"), steps));
    expect(stepLosses(join(folder, "tcp"))).toEqual(stepLosses(join(folder, "placed")));
    // Then over TCP on all four ranks, where experts move again.
    cpSync(join(folder, "tcp"), join(folder, "tcp-on-four"), { recursive: true });
    const more = ["--steps", `${steps + 2}`, "--set", "mesh.expert=4"];
    expect((await skeinTrain(folder, "resume", "tcp-on-four", ...more)).code).toBe(0);
    expect(movesOf("tcp-on-four").some(({ step }) => step > steps)).toBe(true);
    await run("beside-tcp", { steps: steps + 2 }, undefined, "placed");
    const [got, wanted] = ["tcp-on-four", "beside-tcp"].map((output) => stepLosses(join(folder, output)).slice(-2));
    got!.forEach((loss, i) => expect(Math.abs(loss - wanted![i]!)).toBeLessThan(1e-4));
  });

  /** Resumes from the end of a run with moves, on the same mesh and on another mesh, with one more move. */
  const expectOn = async (name: string, mesh: Readonly<Record<string, number>>): Promise<void> => {
    const more = { steps: steps + 2, "model.experts.placement": { everySteps: 9 } };
    const notes = await run(`on-${name}`, { ...more, ...mesh }, undefined, "placed");
    expect(notes.some((line) => line.includes("with mesh.expert: 1 every rank has all experts"))).toBe(name === "one");
    await run(`beside-${name}`, more, undefined, "placed");
    const [got, wanted] = [`on-${name}`, `beside-${name}`].map((output) => stepLosses(join(folder, output)));
    expect(got).toHaveLength(2);
    got!.forEach((loss, i) => expect(Math.abs(loss - wanted![i]!), `step ${steps + i + 1}`).toBeLessThan(1e-4));
  };

  test("resume on another mesh from their current placement", { tags: "full" }, () =>
    expectOn("one", { ranks: 1, "mesh.expert": 1 }),
  );

  test("resume on four ranks, and keep moving", { tags: "full" }, async () => {
    await expectOn("four", { "mesh.expert": 4 });
    expect(movesOf("on-four").length).toBeGreaterThan(0);
  });
});

test.each([
  ["heaviest-first", "always", "dear"],
  ["swap", "always", "wait-free"],
  ["swap", "pays", "dear"],
] as const)(
  "planned by %s (%s), with overlap %s, they change no bit either",
  { tags: "full" },
  async (planner, when, overlap) => {
    const output = `${planner}-${when}-${overlap}`;
    await run(`${output}-still`, { overlap, ...still });
    const placement = { everySteps: 2, planner, when, swaps: 2 };
    const notes = await run(output, { overlap, "model.experts.placement": placement, "memory.recompute": "blocks" });
    // Moves are decided from measurements, which checkpoints store, so a repeated step makes the same decision.
    expect(notes.some((line) => line.startsWith("an exchange of tokens with experts takes "))).toBe(when === "pays");
    const plan = savedPlan(newestCheckpoint(nodeFiles, join(folder, output), expect.fail));
    expect(plan?.expertExchange === undefined).toBe(when === "always");
    if (when === "always") expect(movesOf(output).length).toBeGreaterThan(0);
    expect(stepLosses(join(folder, output))).toEqual(stepLosses(join(folder, `${output}-still`)));
    expect(byExpert(output, 2)).toEqual(byExpert(`${output}-still`, 2));
  },
);

const gpt = (own: string): string => `model={kind: gpt, experts: {count: 8, every: 1, ${own}}}`;

test.each([
  [gpt("gate: soft, placement: {everySteps: 2}"), /all tokens go to all experts, so no placement is better/],
  [gpt("gate: expert-choice, placement: {everySteps: 2}"), /all experts have the same load; use planner: swap/],
  [
    gpt("placement: {everySteps: 2, when: pays}"),
    /with dispatch: dense all slots are sent wherever experts are placed/,
  ],
  [gpt("gate: soft, recordRouting: {everySteps: 2}"), /with the gate soft no token chooses an expert/],
  ["compression={kind: top-k, density: 0.1}", /top-k keeps the unsent gradient of an expert on its rank/],
])("refuses %j in one line", (setting, message) => {
  const [path, value] = [setting.slice(0, setting.indexOf("=")), setting.slice(setting.indexOf("=") + 1)];
  expect(() => readJob(join(folder, "job.yaml"), [from(path, parse(value))])).toThrow(message);
});
