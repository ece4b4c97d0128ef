import { expect, test } from "vitest";
import { predictInTurn, simultaneousModels, simultaneousRows } from "./simultaneous.ts";

test.each(simultaneousModels)("%s: what WFBP leaves exposed is predicted within 10 % with nothing fitted", (model) => {
  const { computeSeconds, exposed } = simultaneousRows.find((row) => row.model === model)!;
  const { waitFree } = predictInTurn(model, computeSeconds);
  expect(Math.abs(waitFree / exposed.waitFree - 1)).toBeLessThan(0.1);
});

test("in the table, collectives at once leave less exposed than merged ones in turn, for every model", () => {
  for (const { exposed } of simultaneousRows) expect(exposed.simultaneous).toBeLessThan(exposed.merged);
});
