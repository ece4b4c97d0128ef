import { expect, test } from "vitest";
import { checkJob } from "../file/check-job.ts";

const faultsOf = (memory: object, model: object = { kind: "gpt" }): string => {
  const data = "hidden" in model ? { kind: "mnist" } : { kind: "moby-dick" };
  const job = { name: "m", batch: 8, steps: 2, optimizer: { kind: "sgd" }, learningRate: { peak: 0.1 } };
  try {
    checkJob({ ...job, data, model, memory }, { file: "job.yaml" });
    return "";
  } catch (error) {
    return (error as Error).message;
  }
};

test("a limit needs recompute: auto, and blocks a model with blocks", () => {
  expect(faultsOf({ recompute: "auto", maxBytes: 1e6 })).toBe("");
  expect(faultsOf({ recompute: "blocks" })).toBe("");
  expect(faultsOf({ recompute: "auto" })).toMatch(
    /job.yaml.*memory.maxBytes, which is not given; give memory.maxBytes/,
  );
  expect(faultsOf({ maxBytes: 1e6 })).toMatch(
    /no effect with recompute: none; use recompute: auto or leave maxBytes out/,
  );
  expect(faultsOf({ recompute: "blocks", maxBytes: 1e6 })).toMatch(/no effect with recompute: blocks/);
  expect(faultsOf({ recompute: "blocks" }, { kind: "mlp", hidden: [4] })).toMatch(
    /is for resnet18, gpt, pretrained, but the model is of kind mlp; use recompute: auto/,
  );
  expect(faultsOf({ recompute: "auto", maxBytes: 0.5 })).toMatch(/memory.maxBytes is 0.5/);
});
