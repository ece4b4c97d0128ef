import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { planned, profileOf, profiles, models } from "../test/profiles.ts";
import {
  allInOne,
  backwardSeconds,
  forwardSeconds,
  onePerTensor,
  plannedBuckets,
  readySeconds,
} from "./gradient-profile.ts";
import { collectiveSeconds } from "./collective-model.ts";
import { overlapBound, timelineOf } from "./timeline.ts";

const three = profileOf([
  { bytes: 1, backwardSeconds: 1, forwardSeconds: 2 },
  { bytes: 1, backwardSeconds: 1 },
  { bytes: 1, backwardSeconds: 2, forwardSeconds: 1 },
]);

test("a timeline has the start and end of each collective, and the exposed time", () => {
  const timeline = timelineOf(three, [["t0"], ["t1", "t2"]], { startupSeconds: 2, secondsPerByte: 1 });
  expect(timeline).toEqual({
    collectives: [
      { kind: "all-reduce", bucket: 0, bytes: 1, startSeconds: 1, endSeconds: 4 },
      { kind: "all-reduce", bucket: 1, bytes: 2, startSeconds: 4, endSeconds: 8 },
    ],
    backwardEndSeconds: 4,
    communicationEndSeconds: 8,
    exposedSeconds: 4,
    iterationSeconds: 11,
  });
});

test("a profile without tensors takes no time", () => {
  expect(timelineOf({ tensors: [] }, [], { startupSeconds: 1, secondsPerByte: 1 }).iterationSeconds).toBe(0);
});

/**
 * Computes the end time independently of the implementation under test: the longest path through tasks and their
 * dependencies, by relaxation until nothing changes.
 */
const longestPath = (durations: readonly number[], edges: readonly (readonly [number, number])[]): number => {
  const ends = [...durations];
  for (let changed = true; changed; ) {
    changed = false;
    for (const [before, after] of edges) {
      const end = ends[before]! + durations[after]!;
      if (end > ends[after]!) [ends[after], changed] = [end, true];
    }
  }
  return Math.max(0, ...ends);
};

describe("laws of the timeline", () => {
  test("equals the critical path of the task graph", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        const numTensors = profile.tensors.length;
        const index = new Map(profile.tensors.map(({ path }, i) => [path, i]));
        const buckets = plannedBuckets(profile, plan);
        const forward = numTensors + buckets.length;
        const durations = [
          ...profile.tensors.map((tensor) => tensor.backwardSeconds),
          ...buckets.map(({ bytes }) => collectiveSeconds(model, bytes)),
          forwardSeconds(profile),
        ];
        const edges = [
          ...profile.tensors.slice(1).map((_, i) => [i, i + 1] as const),
          ...plan.flatMap((bucket, k) => bucket.map((path) => [index.get(path)!, numTensors + k] as const)),
          ...buckets.slice(1).map((_, k) => [numTensors + k, numTensors + k + 1] as const),
          [numTensors - 1, forward] as const,
          [forward - 1, forward] as const,
        ];
        expect(timelineOf(profile, plan, model).iterationSeconds).toBe(longestPath(durations, edges));
      }),
    );
  });

  test("is between both passes and all tasks in sequence; exposes at least the last collective and the time that backward cannot hide", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        const { iterationSeconds, exposedSeconds } = timelineOf(profile, plan, model);
        const durations = plannedBuckets(profile, plan).map(({ bytes }) => collectiveSeconds(model, bytes));
        const total = durations.reduce((sum, seconds) => sum + seconds, 0);
        const passes = forwardSeconds(profile) + backwardSeconds(profile);
        expect(iterationSeconds).toBeGreaterThanOrEqual(passes);
        expect(iterationSeconds).toBeLessThanOrEqual(passes + total);
        expect(exposedSeconds).toBe(iterationSeconds - passes);
        expect(exposedSeconds).toBeGreaterThanOrEqual(durations.at(-1)!);
        expect(exposedSeconds).toBeGreaterThanOrEqual(
          total - (backwardSeconds(profile) - plannedBuckets(profile, plan)[0]!.readySeconds),
        );
        // The speedup by overlap is within the published bound.
        if (iterationSeconds > 0)
          expect((passes + total) / iterationSeconds).toBeLessThanOrEqual(overlapBound(profile, total) * (1 + 1e-12));
      }),
    );
  });

  test("increases with every value, and doubling all values doubles it", () => {
    const figures = fc.constantFrom("bytes", "backwardSeconds", "forwardSeconds", "startupSeconds", "secondsPerByte");
    fc.assert(
      fc.property(planned(), models, figures, fc.nat(7), ([profile, plan], model, figure, at) => {
        const before = timelineOf(profile, plan, model).iterationSeconds;
        const longerProfile = {
          tensors: profile.tensors.map((tensor, i) =>
            i === at % profile.tensors.length && figure in tensor
              ? { ...tensor, [figure]: tensor[figure as "bytes"] + 3 }
              : tensor,
          ),
        };
        const slowerModel = figure in model ? { ...model, [figure]: model[figure as "startupSeconds"] + 3 } : model;
        expect(timelineOf(longerProfile, plan, slowerModel).iterationSeconds).toBeGreaterThanOrEqual(before);
        const twice = {
          tensors: profile.tensors.map(({ path, bytes, backwardSeconds: backward, forwardSeconds: forward }) => ({
            path,
            bytes,
            backwardSeconds: 2 * backward,
            forwardSeconds: 2 * forward!,
          })),
        };
        const twiceModel = { startupSeconds: 2 * model.startupSeconds, secondsPerByte: 2 * model.secondsPerByte };
        expect(timelineOf(twice, plan, twiceModel).iterationSeconds).toBe(2 * before);
      }),
    );
  });

  test("ready times are cumulative sums", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), (profile) => {
        const ready = readySeconds(profile);
        profile.tensors.forEach((tensor, i) => expect(ready[i]! - (ready[i - 1] ?? 0)).toBe(tensor.backwardSeconds));
        expect(backwardSeconds(profile)).toBe(ready.at(-1));
      }),
    );
  });
});

test("the bound of overlap is the published formula, at most 2, and reached by a collective that ends with backward", () => {
  const profile = profileOf([
    { bytes: 6, backwardSeconds: 1, forwardSeconds: 4 },
    { bytes: 0, backwardSeconds: 6 },
  ]);
  const [t_f, t_b, t_c] = [4, 7, 6];
  const r = t_c / t_b;
  expect(overlapBound(profile, t_c)).toBeCloseTo(1 + 1 / (t_f / Math.min(t_c, t_b) + Math.max(r, 1 / r)), 12);
  const { iterationSeconds } = timelineOf(profile, onePerTensor(profile), { startupSeconds: 0, secondsPerByte: 1 });
  expect((t_f + t_b + t_c) / iterationSeconds).toBe(overlapBound(profile, t_c));
  expect(overlapBound(profileOf([{ bytes: 1, backwardSeconds: 5 }]), 5)).toBe(2);
});

test("errors name the plan's or profile's invalid part", () => {
  const model = { startupSeconds: 1, secondsPerByte: 1 };
  expect(() => timelineOf(three, [["t0"], ["t1"]], model)).toThrow("lacks [t2]");
  expect(() => timelineOf(three, [["t0", "t1", "t2"], ["t1"]], model)).toThrow('"t1"');
  expect(() => timelineOf(three, [[], ["t0", "t1", "t2"]], model)).toThrow("bucket 0 of 2 is empty");
  expect(() => timelineOf(profileOf([{ bytes: 1, backwardSeconds: Number.NaN }]), [["t0"]], model)).toThrow(
    'backwardSeconds NaN for "t0"',
  );
  expect(() => timelineOf({ tensors: [three.tensors[0]!, three.tensors[0]!] }, [["t0"]], model)).toThrow('"t0" twice');
  expect(() => timelineOf(three, allInOne(three), { startupSeconds: -1, secondsPerByte: 1 })).toThrow(
    "-1 s + 1 s/byte",
  );
});
