import { checkJob } from "@skein/job/node";
import { mlp, type Model } from "@skein/models";
import {
  type DeviceArray,
  flattenTree,
  jit,
  NdArray,
  randomKey,
  referenceBackend,
  type Tensor,
  trace,
} from "@skein/tensor-core";
import { optimize } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { CompiledSteps } from "./compiled-steps.ts";
import { buildParts, type DeviceState, initState, stateSpecs, stepKindAt } from "./train-state.ts";
import { trainStep } from "./train-step.ts";
import { readFigures, type UpdateFigures } from "./update-figures.ts";

const totalSteps = 4;
const model = mlp({ sizes: [9, 5, 10] }) as Model;
const learningRate = { peak: 0.1, warmupSteps: 1, decay: "cosine" };

/** Fields of the samples used by `train`. */
const fields = {
  inputs: { dtype: "f32", shape: [3, 3, 1] },
  labels: { dtype: "i32", shape: [] },
} as const;

const setUp = (
  settings: object,
): { readonly job: ReturnType<typeof checkJob>; readonly parts: ReturnType<typeof buildParts> } => {
  const job = checkJob(
    {
      name: "norms",
      batch: 4,
      evaluation: { batch: 4 },
      steps: totalSteps,
      data: { kind: "mnist" },
      model: { kind: "mlp", hidden: [5] },
      optimizer: { kind: "sgd" },
      learningRate,
      ...settings,
    },
    { file: "job.yaml" },
  );
  return { job, parts: buildParts({ job, model, totalSteps, train: { fields } }) };
};

/**
 * Trains with the reference backend on one rank.
 * @returns metrics of each update, and the L2 distance by which it moved the parameters.
 */
const train = async (settings: object): Promise<{ readonly figures: UpdateFigures; readonly moved: number }[]> => {
  const { job, parts } = setUp(settings);
  const backend = referenceBackend();
  const steps = new CompiledSteps({ job, parts, backend, communicators: {} });
  const values = async (array: DeviceArray): Promise<number[]> => (await backend.download(array)).toNumbers();
  const paramsOf = async (state: DeviceState): Promise<number[]> =>
    (await Promise.all(flattenTree<DeviceArray>(state.params).leaves.map(values))).flat();
  const updates: { figures: UpdateFigures; moved: number }[] = [];
  let state = (await jit(initState(parts), backend, { mesh: parts.mesh })(
    randomKey(1) as never,
  )) as unknown as DeviceState;
  for (let step = 0; step < totalSteps; step++) {
    const before = await paramsOf(state);
    const pixels = Array.from({ length: 4 * 9 }, (_, i) => Math.sin(1 + i * (step + 2)));
    const batch = { inputs: NdArray.from(pixels, [4, 3, 3, 1]), labels: NdArray.from([0, 3, 7, 9], [4], "i32") };
    const result = await steps.run(step, state, batch);
    const figures = readFigures(await values(result.update));
    if (job.overlap === "dear") expect(figures).toBeUndefined(); // the previous state was final
    const settled = await steps.settle(result.state);
    state = settled.state;
    const after = await paramsOf(state);
    updates.push({
      figures: figures ?? readFigures(await values(settled.update!))!,
      moved: Math.hypot(...after.map((value, i) => value - before[i]!)),
    });
  }
  return updates;
};

describe("plain gradient descent moves by learning rate times gradient norm", () => {
  test.each<[string, object, number]>([
    ["as it is", {}, Infinity],
    ["clipped", { clipNorm: 0.2 }, 0.2],
    ["a step later", { overlap: "dear" }, Infinity],
    ["a step later, clipped", { overlap: "dear", clipNorm: 0.2 }, 0.2],
    ["with the scale of the loss undone", { precision: { kind: "mixed-f16", initialScale: 1024 } }, Infinity],
    ["of what compression leaves", { compression: { kind: "top-k", density: 0.1, errorFeedback: false } }, Infinity],
  ])("%s", async (_, settings, clip) => {
    const updates = await train(settings);
    expect(updates).toHaveLength(totalSteps);
    for (const { figures, moved } of updates) {
      const applied = Math.min(figures.gradientNorm, clip);
      expect(moved / (figures.learningRate * applied)).toBeCloseTo(1, 3);
      if (clip < Infinity) expect(figures.gradientNorm).toBeGreaterThan(clip); // the norm is measured before clipping
    }
    expect(updates[0]!.figures.learningRate).toBeCloseTo(0.05, 6); // warm-up, then half a cosine over three steps
    expect(updates[2]!.figures.learningRate).toBeCloseTo(0.075, 6);
  });
});

test("clipping and metrics share one norm computation", () => {
  const squaresOf = (settings: object): number => {
    const { parts } = setUp(settings);
    const batch = { inputs: { dtype: "f32", shape: [4, 3, 3, 1] }, labels: { dtype: "i32", shape: [4] } };
    const step = trainStep(parts, stepKindAt(parts, 0)) as unknown as (...args: Tensor[]) => unknown;
    const { nodes } = optimize(trace(step, [stateSpecs(parts), batch] as never, { mesh: parts.mesh }).graph);
    return nodes.filter(({ op }) => op === "sum").length;
  };
  expect(squaresOf({ clipNorm: 0.2 })).toBe(squaresOf({}));
});
