import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  backwardSeconds,
  forwardSeconds,
  type GradientProfile,
  mebibytes,
  onePerTensor,
  timelineOf,
} from "../src/index.ts";
import { partitionsOfSize } from "../src/simulated-only/byte-scheduler.ts";
import { planByteScheduler, priorityTimeline } from "../src/planners.ts";
import { readySeconds } from "../src/gradient-profile.ts";
import { models, profileOf, profiles } from "./profiles.ts";
import { googLeNet } from "@skein/published-measurements";

/**
 * Returns the shortest iteration of any schedule, which preemptive sends in forward order reach (Jackson's rule). For
 * every set of tensors, an iteration takes at least r + t + q seconds: r until a tensor of the set is ready, t to send
 * the set, and q from the first use of the tensor that the forward pass uses last to the end of the forward pass.
 */
const shortest = (profile: GradientProfile): number => {
  const ready = readySeconds(profile);
  let left = 0;
  const tails = profile.tensors.map((tensor) => (left += tensor.forwardSeconds ?? 0));
  let bound = backwardSeconds(profile) + forwardSeconds(profile);
  for (const r of ready)
    for (const q of tails) {
      const members = profile.tensors.filter((_, i) => ready[i]! >= r && tails[i]! >= q);
      if (members.length > 0) bound = Math.max(bound, r + q + members.reduce((sum, { bytes }) => sum + bytes, 0));
    }
  return bound;
};

describe("priorityTimeline", () => {
  test("lets tensors that forward needs first overtake, part by part", () => {
    const profile = profileOf([
      { bytes: 4, backwardSeconds: 0, forwardSeconds: 1 },
      { bytes: 2, backwardSeconds: 1, forwardSeconds: 1 },
    ]);
    const { collectives, iterationSeconds } = priorityTimeline(profile, partitionsOfSize(profile, 1), {
      startupSeconds: 0,
      secondsPerByte: 1,
    });
    expect(collectives.map(({ bucket, startSeconds }) => [bucket, startSeconds])).toEqual([
      [0, 0],
      [4, 1],
      [5, 2],
      [1, 3],
      [2, 4],
      [3, 5],
    ]);
    // Tensor t1 runs from 3 to 4, t0 from 6 to 7.
    expect(iterationSeconds).toBe(7);
  });

  test("with free start-ups and partitions of one unit it takes the smallest time of any order", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), (drawn) => {
        const profile = { tensors: drawn.tensors.map((tensor) => ({ ...tensor, bytes: tensor.bytes + 1 })) };
        const plan = partitionsOfSize(profile, 1);
        expect(priorityTimeline(profile, plan, { startupSeconds: 0, secondsPerByte: 1 }).iterationSeconds).toBe(
          shortest(profile),
        );
      }),
    );
  });

  test("in ready order, without dividing, it sends the same as wait-free backpropagation, and ends no later, because there is no barrier", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), models, (profile, model) => {
        const inReadyOrder = partitionsOfSize(profile, Infinity).map((partition, i) => ({ ...partition, priority: i }));
        const timeline = priorityTimeline(profile, inReadyOrder, model);
        const barrier = timelineOf(profile, onePerTensor(profile), model);
        expect(timeline.collectives).toEqual(barrier.collectives);
        expect(timeline.iterationSeconds).toBeLessThanOrEqual(barrier.iterationSeconds);
      }),
    );
  });

  test("rejects a plan that does not contain each byte once", () => {
    const profile = profileOf([{ bytes: 4, backwardSeconds: 0 }]);
    const model = { startupSeconds: 0, secondsPerByte: 1 };
    expect(() => priorityTimeline(profile, [{ path: "t0", bytes: 3, priority: 0 }], model)).toThrow(
      '"t0" have 3 bytes, but the tensor has 4',
    );
    expect(() => priorityTimeline(profile, [{ path: "t1", bytes: 4, priority: 0 }], model)).toThrow('"t1"');
    expect(() => priorityTimeline(profileOf([{ bytes: 0, backwardSeconds: 0 }]), [], model)).toThrow(
      "have 0 bytes, but the tensor has 0",
    );
    expect(() => partitionsOfSize(profile, 0)).toThrow("the partition size is 0 bytes");
  });
});

describe("planByteScheduler", () => {
  test("partitions contain every byte once, and are no larger than requested", () => {
    fc.assert(
      fc.property(profiles(), fc.integer({ min: 1, max: 50 }), (profile, size) => {
        const plan = partitionsOfSize(profile, size);
        for (const [i, { path, bytes }] of profile.tensors.entries()) {
          const own = plan.filter((partition) => partition.path === path);
          expect(own.reduce((sum, partition) => sum + partition.bytes, 0)).toBe(bytes);
          for (const partition of own) {
            expect(partition.bytes).toBeLessThanOrEqual(size);
            expect(partition.priority).toBe(profile.tensors.length - 1 - i);
          }
        }
      }),
    );
  });

  test("is the best of its sizes, and whole tensors are one of them", () => {
    fc.assert(
      fc.property(profiles({ least: 1 }), models, (profile, model) => {
        const seconds = (size: number): number =>
          priorityTimeline(profile, partitionsOfSize(profile, size), model).iterationSeconds;
        const plan = planByteScheduler(profile, model, { partitionBytes: [1, 4, 16] });
        expect(priorityTimeline(profile, plan, model).iterationSeconds).toBe(
          Math.min(...[1, 4, 16, Infinity].map(seconds)),
        );
      }),
    );
  });

  test("divides the large tensors of a traced network, but not if a start-up costs more than it saves", () => {
    const slow = { startupSeconds: 1e-6, secondsPerByte: 1.5e-8 };
    const plan = planByteScheduler(googLeNet, slow);
    expect(Math.max(...plan.map(({ bytes }) => bytes))).toBeLessThan(mebibytes(8));
    const uncut = partitionsOfSize(googLeNet, Infinity);
    expect(priorityTimeline(googLeNet, plan, slow).iterationSeconds).toBeLessThan(
      priorityTimeline(googLeNet, uncut, slow).iterationSeconds,
    );
    expect(planByteScheduler(googLeNet, { startupSeconds: 0.1, secondsPerByte: 1e-12 })).toHaveLength(64);
  });
});
