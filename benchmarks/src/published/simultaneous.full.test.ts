import { expect, test } from "vitest";
import { predictInTurn, predictSimultaneous, simultaneousModels, simultaneousRows } from "./simultaneous.ts";

test.each(simultaneousModels)(
  "%s: collectives at once save the measured part of what merging leaves, to a fifth",
  (model) => {
    const { computeSeconds, exposed } = simultaneousRows.find((row) => row.model === model)!;
    const saved = predictSimultaneous(model, computeSeconds) / predictInTurn(model, computeSeconds).merged;
    expect(Math.abs(saved / (exposed.simultaneous / exposed.merged) - 1)).toBeLessThan(0.2);
  },
);
