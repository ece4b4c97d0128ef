import { expect, test } from "vitest";
import { expertFigures } from "./expert-figures.ts";

const step = (layer: string, loads: readonly number[], droppedShare: number, entropy: number): object =>
  Object.fromEntries([
    ...loads.map((load, i) => [`${layer}.load_E.${i}`, load]),
    [`${layer}.droppedShare`, droppedShare],
    [`${layer}.entropy`, entropy],
  ]);

test("means over layers and steps", () => {
  const figures = expertFigures([
    { loss: 3, ...step("block-1", [4, 0], 0.5, 0), ...step("block-10", [2, 2], 0, 0.6) },
    { loss: 2, ...step("block-1", [3, 1], 0.25, 0.2), ...step("block-10", [2, 2], 0, 0.6) },
  ])!;
  expect(figures.droppedShare).toBeCloseTo(0.1875, 12);
  expect(figures.imbalance).toBeCloseTo((2 + 1 + 1.5 + 1) / 4, 12);
  expect(figures.entropy).toBeCloseTo(0.35, 12);
});

test("a model without experts has none", () => {
  expect(expertFigures([{ type: "step", loss: 1 }])).toBeUndefined();
});
