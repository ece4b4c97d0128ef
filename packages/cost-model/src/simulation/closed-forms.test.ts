import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { models, planned } from "../../test/profiles.ts";
import { backwardSeconds, forwardSeconds, type GradientProfile, plannedBuckets } from "../gradient-profile.ts";
import type { BucketPlan } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds, lineAt } from "../collective-model.ts";
import { dearTimeline, type HalvesModel } from "../planners/dear.ts";
import { simultaneousTimeline, twoAtOnce } from "../simultaneous-timeline.ts";
import { overlapBound, timelineOf } from "../timeline.ts";
import { simulate, type SimulatedStep, type SimulationOptions } from "./simulate.ts";
import type { CollectiveTask, Program, SimulatedTask } from "./task.ts";

/** Builds a program step by step; `at` of a task is its index. */
class ProgramBuilder {
  readonly tasks: SimulatedTask[] = [];

  compute(name: string, seconds: number): void {
    this.tasks.push({ kind: "compute", name, seconds });
  }

  start(collective: CollectiveTask["collective"], name: string, model: CollectiveModel, bytes: number): number {
    const { startupSeconds, secondsPerByte } = lineAt(model, bytes);
    const phases = [{ stream: "inter-node", startupSeconds, transferSeconds: secondsPerByte * bytes }] as const;
    return this.tasks.push({ kind: "collective", name, axis: "data", collective, bytes, phases }) - 1;
  }

  wait(index: number, previous = false): void {
    this.tasks.push({ kind: "wait", for: index, previous });
  }

  /**
   * Adds the backward pass, in which each bucket's collective starts when its last gradient is ready.
   * @returns the indices of the starts.
   */
  backward(
    profile: GradientProfile,
    plan: BucketPlan,
    collective: CollectiveTask["collective"],
    model: CollectiveModel,
  ): number[] {
    const buckets = plannedBuckets(profile, plan);
    const left = plan.map((paths) => paths.length);
    const starts: number[] = [];
    for (const { path, backwardSeconds: seconds } of profile.tensors) {
      this.compute(`backward ${path}`, seconds);
      const bucket = plan.findIndex((paths) => paths.includes(path));
      if (--left[bucket]! === 0)
        starts[bucket] = this.start(collective, `bucket ${bucket}`, model, buckets[bucket]!.bytes);
    }
    return starts;
  }

  forward({ tensors }: GradientProfile): void {
    for (const { path, forwardSeconds: seconds = 0 } of tensors.toReversed()) this.compute(`forward ${path}`, seconds);
  }
}

/** Simulates a program on three equivalent ranks with one rank per host. */
const simulated = (program: Program, options: SimulationOptions = {}): SimulatedStep =>
  simulate({ programs: [program, program, program], groups: { data: [[0, 1, 2]] } }, { ...options, everyRank: true });

const waitFree = (profile: GradientProfile, plan: BucketPlan, model: CollectiveModel): Program => {
  const builder = new ProgramBuilder();
  for (const start of builder.backward(profile, plan, "all-reduce", model)) builder.wait(start);
  builder.forward(profile);
  return builder.tasks;
};

describe("wait-free backpropagation", () => {
  test("equals its closed form, collective by collective", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        const { stepSeconds, exposedSeconds, collectives } = simulated(waitFree(profile, plan, model));
        const timeline = timelineOf(profile, plan, model);
        expect(stepSeconds).toBe(timeline.iterationSeconds);
        expect(exposedSeconds).toEqual([0, 1, 2].map(() => timeline.exposedSeconds));
        expect(collectives.map(({ phases: [phase] }) => [phase!.beginSeconds, phase!.endSeconds])).toEqual(
          timeline.collectives.map(({ startSeconds, endSeconds }) => [startSeconds, endSeconds]),
        );
      }),
      { numRuns: 40 },
    );
  });

  test("exposes at least the last collective, and the time that backward cannot hide; overlap gains at most its bound", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        const { stepSeconds, exposedSeconds } = simulated(waitFree(profile, plan, model));
        const buckets = plannedBuckets(profile, plan);
        const seconds = buckets.map(({ bytes }) => collectiveSeconds(model, bytes));
        const total = seconds.reduce((sum, one) => sum + one, 0);
        const passes = forwardSeconds(profile) + backwardSeconds(profile);
        for (const exposed of exposedSeconds) {
          expect(exposed).toBeGreaterThanOrEqual(seconds.at(-1)!);
          expect(exposed).toBeGreaterThanOrEqual(total - (backwardSeconds(profile) - buckets[0]!.readySeconds));
          expect(stepSeconds).toBe(passes + exposed);
        }
        expect(stepSeconds).toBeLessThanOrEqual(passes + total);
        expect(passes + total).toBeLessThanOrEqual(stepSeconds * overlapBound(profile, total) * (1 + 1e-12));
      }),
      { numRuns: 40 },
    );
  });

  test("equals simultaneousTimeline with two concurrent collectives, up to rounding", () => {
    fc.assert(
      fc.property(planned(), models, ([profile, plan], model) => {
        // 1 + (2 − 1)(1 − ½) = 1.5.
        const { stepSeconds, collectives } = simulated(waitFree(profile, plan, model), {
          concurrent: 2,
          contention: { penaltyPerFlow: -0.5 },
        });
        const timeline = simultaneousTimeline(profile, plan, model, twoAtOnce);
        expect(stepSeconds).toBeCloseTo(timeline.iterationSeconds, 9);
        for (const [i, { startSeconds, endSeconds }] of timeline.collectives.entries()) {
          expect(collectives[i]!.phases[0]!.beginSeconds).toBeCloseTo(startSeconds, 9);
          expect(collectives[i]!.endSeconds).toBeCloseTo(endSeconds, 9);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("DeAR", () => {
  /** Returns the buckets in the order in which the forward pass needs them. */
  const needed = ({ tensors }: GradientProfile, plan: BucketPlan): number[] => [
    ...new Set(tensors.toReversed().map(({ path }) => plan.findIndex((paths) => paths.includes(path)))),
  ];
  const halves: fc.Arbitrary<HalvesModel> = fc.record({ reduceScatter: models, allGather: models });

  const forwardBehind = (
    builder: ProgramBuilder,
    profile: GradientProfile,
    plan: BucketPlan,
    reached: (bucket: number) => void,
  ): void => {
    const seen = new Set<number>();
    for (const { path, forwardSeconds: seconds = 0 } of profile.tensors.toReversed()) {
      const bucket = plan.findIndex((paths) => paths.includes(path));
      if (!seen.has(bucket)) reached(bucket);
      seen.add(bucket);
      builder.compute(`forward ${path}`, seconds);
    }
  };

  test.each(["queued", "one-ahead"] as const)("equals its closed form, all-gathers %s", (allGathers) => {
    fc.assert(
      fc.property(planned(), halves, ([profile, plan], model) => {
        const builder = new ProgramBuilder();
        for (const scatter of builder.backward(profile, plan, "reduce-scatter", model.reduceScatter))
          builder.wait(scatter);
        const buckets = plannedBuckets(profile, plan);
        const gathers = new Map<number, number>();
        const left = needed(profile, plan);
        const gather = (): void => {
          const bucket = left.shift();
          if (bucket !== undefined)
            gathers.set(
              bucket,
              builder.start("all-gather", `bucket ${bucket}`, model.allGather, buckets[bucket]!.bytes),
            );
        };
        const numConcurrent = allGathers === "queued" ? left.length : 1;
        for (let i = 0; i < numConcurrent; i++) gather();
        forwardBehind(builder, profile, plan, (bucket) => {
          builder.wait(gathers.get(bucket)!);
          if (allGathers === "one-ahead") gather();
        });
        const { stepSeconds, exposedSeconds } = simulated(builder.tasks);
        const timeline = dearTimeline(profile, plan, model, { allGathers });
        expect([stepSeconds, exposedSeconds[0]]).toEqual([timeline.iterationSeconds, timeline.exposedSeconds]);
      }),
      { numRuns: 40 },
    );
  });

  test("the closed form is the steady state of all-gathers that extend into the next step", () => {
    fc.assert(
      fc.property(planned(), halves, ([profile, plan], model) => {
        // The program is built twice: the first pass finds the positions of the all-gathers.
        const build = (
          gathers: ReadonlyMap<number, number>,
        ): { readonly tasks: Program; readonly starts: ReadonlyMap<number, number> } => {
          const builder = new ProgramBuilder();
          forwardBehind(builder, profile, plan, (bucket) => builder.wait(gathers.get(bucket) ?? 0, true));
          for (const scatter of builder.backward(profile, plan, "reduce-scatter", model.reduceScatter))
            builder.wait(scatter);
          const buckets = plannedBuckets(profile, plan);
          const starts = needed(profile, plan).map(
            (bucket) =>
              [
                bucket,
                builder.start("all-gather", `bucket ${bucket}`, model.allGather, buckets[bucket]!.bytes),
              ] as const,
          );
          return { tasks: builder.tasks, starts: new Map(starts) };
        };
        const { tasks } = build(build(new Map()).starts);
        const { stepSeconds, exposedSeconds } = simulated(tasks, { steps: 3 });
        const timeline = dearTimeline(profile, plan, model);
        expect([stepSeconds, exposedSeconds[0]]).toEqual([timeline.iterationSeconds, timeline.exposedSeconds]);
      }),
      { numRuns: 40 },
    );
  });
});
