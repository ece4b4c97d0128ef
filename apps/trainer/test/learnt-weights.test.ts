import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flattenTree, leafPaths, type NdArray } from "@skein/tensor-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-weights-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const leavesOf = (tree: unknown): ReadonlyMap<string, number[]> => {
  const { leaves } = flattenTree<NdArray>(tree);
  return new Map(leafPaths(tree).map((path, i) => [path, leaves[i]!.toNumbers()]));
};

test("a program gets moved experts in the order of their numbers, with the state of the model", {
  tags: "full",
}, async () => {
  const run = async (placement: object) => {
    const notes: string[] = [];
    const job = {
      seed: 3,
      ranks: 2,
      mesh: { expert: 2 },
      backend: "cpu",
      batch: 8,
      steps: 4,
      data: { kind: "moby-dick", window: 8, trainSamples: 80, testSamples: 16 },
      model: {
        kind: "gpt",
        layers: 1,
        heads: 2,
        width: 8,
        experts: { count: 4, capacity: "all", every: 1, gate: "sigmoid", dispatch: "ragged", ...placement },
      },
      optimizer: { kind: "adamw" },
      learningRate: { peak: 0.05 },
      evaluation: { batch: 8 },
    } as unknown as TrainJob;
    const { parameters, state } = await train(job, {
      output: join(folder, Object.keys(placement).join("-") || "fixed"),
      onNote: (line) => notes.push(line),
    });
    return { notes, params: leavesOf(parameters()), state: leavesOf(state()) };
  };
  const fixed = await run({});
  const moved = await run({ placement: { everySteps: 1, planner: "swap" } });
  expect(moved.notes.join("\n")).toMatch(/moved [1-9]/);
  for (const part of ["params", "state"] as const) {
    expect([...moved[part].keys()]).toEqual([...fixed[part].keys()]);
    for (const [path, values] of fixed[part]) {
      if (/meanLoad|loadWeight/.test(path)) continue; // these are averaged over different steps
      const size = Math.max(1e-6, ...values.map(Math.abs));
      moved[part]
        .get(path)!
        .forEach((value, i) => expect(Math.abs(value - values[i]!), path).toBeLessThan(1e-4 * size));
    }
  }
  const places = [...moved.state].filter(([path]) => path.endsWith("placeOf_E"));
  expect(places.map(([, values]) => values)).toEqual([[0, 1, 2, 3]]);
});
