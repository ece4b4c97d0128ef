import { expect, test } from "vitest";
import { calibrateCluster, nominalCluster } from "./calibrate-cluster.ts";
import { calibratedCluster } from "./calibrated-cluster.ts";
import { folds, predictFold, summarizeErrors } from "./held-out.ts";
import { cells } from "./seven-methods.ts";

test("a calibration that begins at data sheets finds the cluster that is written down", () => {
  const { found } = calibrateCluster(cells, nominalCluster);
  expect(found).toHaveLength(15);
  for (const { parameter, value } of found) expect(value / parameter.read(calibratedCluster)).toBeCloseTo(1, 2);
});

test.each(folds)("held out, $title: BSP, WFBP and MG-WFBP are predicted within 15 %", (fold) => {
  const { median, worst } = summarizeErrors(predictFold(fold, nominalCluster));
  expect(Math.abs(worst.relativeError)).toBeLessThan(0.15);
  expect(median).toBeLessThan(0.06);
});
