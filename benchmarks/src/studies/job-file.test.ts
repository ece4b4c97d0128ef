import { expect, test } from "vitest";
import { layJobs } from "./job-file.ts";

const base = {
  epochs: 2,
  clipNorm: 1,
  optimizer: { kind: "adamw", beta2: 0.99 },
  learningRate: { peak: 0.1, decay: "cosine" },
};

test("an object of a kind takes the place of the one below; others are laid over key by key", () => {
  expect(layJobs(base, { optimizer: { kind: "sgd" } }, { learningRate: { peak: 0.5 } })).toEqual({
    ...base,
    optimizer: { kind: "sgd" },
    learningRate: { peak: 0.5, decay: "cosine" },
  });
  expect(base.learningRate.peak).toBe(0.1);
});

test("steps take the place of epochs, undefined of what was below, and later jobs that of earlier ones", () => {
  const job = layJobs(base, { steps: 7, clipNorm: undefined }, { steps: 8 });
  expect(JSON.parse(JSON.stringify(job))).toEqual({
    steps: 8,
    optimizer: base.optimizer,
    learningRate: base.learningRate,
  });
});
