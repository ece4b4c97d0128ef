import { expect, test } from "vitest";
import { IdleCurvature } from "./idle-curvature.ts";

const lookAt = (figures: readonly (number | undefined)[]): (string | undefined)[] => {
  const watch = new IdleCurvature({ kind: "eva", damping: 0.03 });
  return figures
    .map((curvature) => watch.look({ gradientNorm: 1, learningRate: 1, ...(curvature !== undefined && { curvature }) }))
    .filter((text) => text !== undefined);
};
const updates = (count: number, of: number | undefined): (number | undefined)[] =>
  Array<undefined>(count)
    .fill(undefined)
    .map(() => of);

test("curvature without effect is reported once, whatever the first steps were like", () => {
  expect(lookAt([...updates(50, 0.9), ...updates(100, 4e-7)])).toEqual([
    'curvature changed gradients by 0.00004 % over 50 steps, but at least 0.01 % is needed to matter: with damping 0.03, eva is nearly plain momentum; lower optimizer.damping by factors of 10 until "curvature" in metrics.jsonl grows',
  ]);
  expect(lookAt(updates(100, -1e-7))).toHaveLength(1); // rounding gives slightly less than zero
});

test("curvature that acts occasionally is not reported, nor are missing or too few values", () => {
  expect(lookAt([...updates(99, 0), 0.1])).toEqual([]);
  expect(lookAt(updates(99, 0))).toEqual([]);
  expect(lookAt(updates(200, undefined))).toEqual([]);
});
