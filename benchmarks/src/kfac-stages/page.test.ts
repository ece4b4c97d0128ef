import { expect, test } from "vitest";
import { kfacStagesPage, sentencesOf, stageRatiosPlot } from "./page.ts";
import { findKfacStages, heldOut, isMet } from "./results.ts";

const results = findKfacStages();

test("each stage is on the page, with whether it was met", () => {
  const page = kfacStagesPage(results, {
    date: "2026-11-24",
    command: "pnpm bench kfac-stages",
    seconds: 1,
    draw: () => "plot",
  });
  const { stages, unpublished } = results;
  expect(page.match(/\| no +\|/g)).toHaveLength(stages.filter((figure) => !isMet(figure)).length);
  expect(page.match(/\| yes +\|/g)).toHaveLength(stages.filter(isMet).length);
  for (const { inverseCompute } of Object.values(unpublished.forms))
    expect(page).toContain((1e3 * inverseCompute).toFixed(1));
  expect(page).not.toMatch(/NaN|undefined|Infinity/);
});

test("its sentences name what is off, and do not claim an order that is none", () => {
  const [first, , third] = sentencesOf(results);
  expect(first).toContain("8 of 11 stages of DenseNet-201");
  expect(first).toContain("inverses, MPD (0.31");
  expect(third).toContain("Both ablations stand in the published order");
  const swapped = results.placement.map((figure) => ({ ...figure, predicted: 1 / figure.predicted }));
  expect(sentencesOf({ ...results, placement: swapped })[2]).toContain("1 of 2 ablations stand");
});

test("the plot has a row for each stage, filled where it was held out", () => {
  const { rows } = stageRatiosPlot(results);
  expect(rows).toHaveLength(33);
  expect(rows.filter(({ solid }) => solid)).toHaveLength(
    results.stages.filter(({ network }) => heldOut.includes(network)).length,
  );
});
