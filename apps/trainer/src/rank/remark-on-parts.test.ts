import { checkJob } from "@skein/job/node";
import { expect, test } from "vitest";
import { remarkOnParts } from "./remark-on-parts.ts";

const remarkOf = (settings: object, joins: boolean, hasState: boolean): string | undefined => {
  const job = checkJob(
    {
      name: "parts",
      batch: 8,
      steps: 1,
      evaluation: { batch: 8 },
      data: { kind: "moby-dick", window: 8 },
      model: { kind: "gpt", layers: 2, heads: 2, width: 8 },
      optimizer: { kind: "sgd" },
      learningRate: { peak: 0.1 },
      ...settings,
    },
    { file: "job.yaml" },
  );
  return remarkOnParts(job, joins ? { joinParts: ({ own }) => own } : {}, hasState);
};

const withExperts = (experts: object): object => ({
  model: { kind: "gpt", layers: 2, heads: 2, width: 8, experts: { count: 4, topK: 2, ...experts } },
});

test("names the parts that apply, and nothing else", () => {
  expect(remarkOf({}, false, true)).toBeUndefined();
  expect(remarkOf({ accumulate: 2 }, false, false)).toBeUndefined();
  expect(remarkOf({ accumulate: 2 }, false, true)).toBe(
    "accumulate: 2: the model's state, such as running statistics, changes once per part",
  );
  expect(remarkOf({ accumulate: 4, ...withExperts({}) }, true, true)).toBe(
    "accumulate: 4: the capacity of experts is the capacity of one part",
  );
  expect(remarkOf({ accumulate: 4, ...withExperts({ capacity: "all" }) }, true, true)).toBeUndefined();
});
