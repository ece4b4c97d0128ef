import { expect, test } from "vitest";
import { calibrateCluster, nominalCluster } from "./calibrate-cluster.ts";
import { calibratedCluster } from "./calibrated-cluster.ts";
import { folds, predictFold, summarizeErrors } from "./held-out.ts";
import { cells } from "./seven-methods.ts";

test("a calibration that begins at data sheets finds the cluster that is written down", () => {
  const { found } = calibrateCluster(cells, nominalCluster);
  expect(found).toHaveLength(17);
  for (const { parameter, value } of found) {
    const written = parameter.read(calibratedCluster);
    if (written === 0) expect(value, parameter.name).toBe(0);
    else expect(value / written, parameter.name).toBeCloseTo(1, 2);
  }
});

test.each(folds)("held out, $title: BSP, WFBP and MG-WFBP are predicted within 15 %", (fold) => {
  const { median, worst } = summarizeErrors(predictFold(fold, nominalCluster));
  expect(Math.abs(worst.relativeError)).toBeLessThan(0.15);
  expect(median).toBeLessThan(0.06);
});
