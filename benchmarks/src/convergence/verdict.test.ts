import { expect, test } from "vitest";
import { madeFigures } from "../studies/made-results.ts";
import type { Outcome } from "../studies/outcome.ts";
import { compareQuality, type Quality, qualityOf } from "./verdict.ts";

const done = (held: { readonly testAccuracy: number } | { readonly bitsPerByte: number }): Outcome => ({
  kind: "done",
  ...madeFigures,
  ...held,
});
const percent = (...values: number[]): Quality => qualityOf(values.map((testAccuracy) => done({ testAccuracy })))!;
const bits = (...values: number[]): Quality => qualityOf(values.map((bitsPerByte) => done({ bitsPerByte })))!;
const margin = { points: 0.5, bits: 0.125 };

test("seeds give mean, least and greatest, and no figure while one is missing", () => {
  expect(percent(0.5, 0.75)).toEqual({ unit: "%", mean: 62.5, least: 50, greatest: 75, seeds: 2 });
  expect(qualityOf([done({ testAccuracy: 0.5 }), undefined])).toBeUndefined();
  expect(qualityOf([done({ testAccuracy: 0.5 }), { kind: "diverged", reason: "" }])).toBeUndefined();
});

test("accuracy counts upwards, bits downwards; a margin is met exactly at its edge, by the worst seed", () => {
  const dense = percent(0.75, 0.75, 0.75);
  const verdict = (quality: Quality): unknown => compareQuality(quality, dense, margin, 3);
  expect(verdict(percent(0.745, 0.75, 0.76))).toMatchObject({
    best: expect.closeTo(-1, 9),
    worst: expect.closeTo(0.5, 9),
    standing: "holds",
  });
  expect(verdict(percent(0.744, 0.75, 0.76))).toMatchObject({ standing: "undecided" });
  expect(verdict(percent(0.74, 0.74, 0.749))).toMatchObject({ standing: "fails" });
  const denseBits = bits(2, 2, 2);
  expect(compareQuality(bits(2, 1.9, 2.125), denseBits, margin, 3)).toMatchObject({
    best: expect.closeTo(-0.1, 9),
    worst: 0.125,
    standing: "holds",
  });
  expect(compareQuality(bits(2, 2, 2.126), denseBits, margin, 3).standing).toBe("undecided");
});

test("with too few seeds of one side nothing holds, however good; but it can fail", () => {
  const [three, two] = [percent(0.75, 0.75, 0.75), percent(0.75, 0.75)];
  expect(compareQuality(two, three, margin, 3).standing).toBe("undecided");
  expect(compareQuality(three, two, margin, 3).standing).toBe("undecided");
  expect(compareQuality(percent(0.1), three, margin, 3).standing).toBe("fails");
});

test("what holds is no worse than the margin in any seed, and a better seed never takes that away", () => {
  const steps = [0.74, 0.745, 0.75, 0.76];
  const triples = steps.flatMap((a) => steps.flatMap((b) => steps.map((c) => [a, b, c] as const)));
  let numHold = 0;
  for (const own of triples)
    for (const base of triples) {
      const [quality, dense] = [percent(...own), percent(...base)];
      const { standing, worst } = compareQuality(quality, dense, margin, 3);
      if (standing !== "holds") continue;
      numHold++;
      if (worst > margin.points + 1e-9)
        throw new Error(`${own} holds beside ${base}, although its worst seed is ${worst} worse`);
      if (compareQuality(percent(own[0], own[1], 1), dense, margin, 3).standing !== "holds")
        throw new Error(`${own} beside ${base}`);
    }
  expect(numHold).toBeGreaterThan(1000);
});
