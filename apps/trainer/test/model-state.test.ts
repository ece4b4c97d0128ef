import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LabelledBatch, labelledModel } from "@skein/models";
import { add, full, greater, matmul, normal, sum, type Tensor } from "@skein/tensor-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { data } from "./points.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-state-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Own {
  readonly steps: Tensor;
  readonly isGrown: Tensor;
  readonly byte: Tensor;
}

/** A model with state of several dtypes, equal on all ranks. */
const model = labelledModel({
  init: (key: Tensor) => ({
    params: { w: normal(key, [2, 2]) },
    state: {
      steps: full([], 0, "i32"),
      isGrown: full([], 0, "bool"),
      byte: full([3], 7, "u8"),
    },
  }),
  apply: ({ w }: { w: Tensor }, { steps, byte }: Own, inputs: Tensor) => [
    matmul(inputs, w),
    { steps: add(steps, 1), isGrown: greater(steps, 1), byte },
  ],
});

/** A model whose state counts the samples of its rank. */
const counting = {
  ...model,
  loss: (params: never, state: Own, batch: LabelledBatch, context: never) => {
    const [loss, next] = model.loss(params, state, batch, context);
    return [loss, { ...next, steps: add(state.steps, sum(batch.labels)) }] as never;
  },
};

const job = {
  seed: 5,
  ranks: 2,
  backend: "cpu",
  batch: 30,
  steps: 2,
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01 },
  evaluation: { batch: 16 },
  replicas: { checkEverySteps: 1 },
  data,
} as const;

test("state of any dtype that is the same on all ranks can be trained on several ranks", async () => {
  const { step } = await train({ ...job, model } as unknown as TrainJob, { output: join(folder, "run") });
  expect(step).toBe(2);
});

test("state that would differ between ranks is refused before the first step", async () => {
  await expect(
    train({ ...job, model: counting } as unknown as TrainJob, { output: join(folder, "run") }),
  ).rejects.toThrow(
    /^train\(\): model: state steps is i32\[\] and depends on the samples, so it would differ between 2 ranks/,
  );
});
