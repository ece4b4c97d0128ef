import { hardwareNamed, type HardwareFile } from "@skein/cost-model/hardware";
import { expect, test } from "vitest";
import { extrapolate, parseMeasuredStep } from "./extrapolation.ts";

const base = hardwareNamed("laptop-cpu");
const run = { overlaps: false, predictedSeconds: 0.1 };
const calibrated: HardwareFile = {
  ...base,
  topology: { ranks: 2, ranksPerHost: 2 },
  calibration: {
    links: base.links.source,
    runs: [
      { name: "mnist", measuredSeconds: 0.2, ...run },
      { name: "gpt", measuredSeconds: 0.5, ...run },
    ],
  },
};

test("repeats the calibrated run of the job for more ranks, but not for fewer", () => {
  expect(extrapolate({ name: "mnist", ranks: 8 }, calibrated, [])).toEqual({ stepSeconds: 0.2, from: [2] });
  expect(extrapolate({ name: "mnist", ranks: 2 }, calibrated, [])).toBeUndefined();
  expect(extrapolate({ name: "cnn", ranks: 8 }, calibrated, [])).toBeUndefined();
  expect(extrapolate({ name: "mnist", ranks: 8 }, base, [])).toBeUndefined();
});

test("ignores steps over links that were replaced since", () => {
  const relinked = { ...calibrated, links: { ...calibrated.links, source: "measured since" } };
  expect(extrapolate({ name: "mnist", ranks: 8 }, relinked, [])).toBeUndefined();
});

test("repeats the last doubling of given steps, and ignores the calibration", () => {
  const given = ["4=0.3", "2=0.2", "16=9"].map(parseMeasuredStep);
  const { stepSeconds, from } = extrapolate({ name: "mnist", ranks: 8 }, calibrated, given)!;
  expect(stepSeconds).toBeCloseTo(0.45, 12);
  expect(from).toEqual([2, 4]);
});

test("rejects given steps that all have as many ranks as the job or more", () => {
  expect(() => extrapolate({ name: "mnist", ranks: 8 }, calibrated, [parseMeasuredStep("8=0.3")])).toThrow(
    "a step on 8 ranks cannot be extrapolated from 8 ranks; measure fewer ranks than 8",
  );
});

test.each(["4", "4=", "4=0", "4=-1", "0=1", "2.5=1", "4=1=2", "four=1", "4=Infinity", "=1", "4=0.1s"])(
  "rejects --measured %s",
  (text) => {
    expect(() => parseMeasuredStep(text)).toThrow(
      `--measured ${text} is not RANKS=SECONDS with a whole number of ranks and seconds above 0; give a measured step such as --measured 4=0.081`,
    );
  },
);
