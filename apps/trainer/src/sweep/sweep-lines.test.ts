import { expect, test } from "vitest";
import type { Trial } from "./sweep-file.ts";
import { chanceRemark } from "./sweep-lines.ts";

const trialOf = (loss: number, accuracy?: number): Trial => ({
  trial: 1,
  values: {},
  state: "finished",
  loss,
  ...(accuracy !== undefined && { accuracy }),
});
const failed: Trial = { trial: 2, values: {}, state: "failed", reason: "the loss is not finite" };

test("a sweep whose trials all perform at chance reports it, and one better trial prevents that", () => {
  const chance = { accuracy: 0.36, loss: Math.log(3) };
  expect(chanceRemark([trialOf(1.2, 0.053), trialOf(1.3, 0.36), failed], chance)).toMatch(
    /^no trial is better than chance: the highest accuracy is 36\.0 %, and the most frequent class is 36\.0 % of the/,
  );
  expect(chanceRemark([trialOf(1.2, 0.053), trialOf(1.3, 0.37), failed], chance)).toBeUndefined();
  expect(chanceRemark([failed], chance)).toBeUndefined();
});

test("without accuracies the loss of a uniform guess is the bound, and regression has none", () => {
  const chance = { loss: Math.log(256) };
  expect(chanceRemark([trialOf(5.6), failed], chance)).toContain(
    "the lowest loss is 5.600, and a uniform guess has 5.545",
  );
  expect(chanceRemark([trialOf(5.6), trialOf(5.5)], chance)).toBeUndefined();
  expect(chanceRemark([trialOf(5.6)], {})).toBeUndefined();
});
