import type { LinearCollectiveModel } from "@skein/cost-model";
import type { ParmModels } from "@skein/cost-model/planners";
import type { Job } from "@skein/job/node";
import { expertSchedulePlanSchema, isAllowed, isSchedulePlanned, withPlannedSchedule } from "@skein/step/node";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideSchedule, formatSchedule } from "./plan-expert-schedule.ts";

const jobOf = (experts: object = {}, tensor = 2): Job =>
  ({
    ranks: 4,
    batch: 8,
    mesh: { expert: 4 / tensor, tensor },
    model: {
      kind: "gpt",
      width: 16,
      experts: { count: 4, topK: 2, activation: "gelu", capacity: 1, dispatch: "dense", shards: "auto", ...experts },
    },
  }) as unknown as Job;

const line = (secondsPerByte: number, startupSeconds = 0): LinearCollectiveModel => ({
  startupSeconds,
  secondsPerByte,
});
const modelsOf = (models: Partial<ParmModels> = {}): ParmModels => ({
  expertAllToAll: line(1e-9),
  fusedAllToAll: line(1e-9),
  fusedWorldSize: 4,
  shardAllGather: line(1e-9),
  shardAllReduce: line(2e-9),
  tensorAllGather: line(1e-9),
  ...models,
});
const length = 16;

describe("the schedule of a job's experts", () => {
  // Each group has 4 samples of 16 positions, and 128 slots of 64 bytes. Each expert has two products of 16 × 32
  // numbers, half of which belong to each rank.
  test("is costed by the size of a rank's positions and slots", () => {
    const free = line(0);
    const none = {
      expertAllToAll: free,
      fusedAllToAll: free,
      fusedWorldSize: 4,
      shardAllGather: free,
      shardAllReduce: free,
      tensorAllGather: free,
    };
    const secondsOf = (models: Partial<ParmModels>, secondsPerFlop = 0) =>
      decideSchedule(jobOf(), length, { models: { ...none, ...models }, secondsPerFlop }).seconds;
    const flops = 2 * 2 * 128 * 16 * 32;
    expect(secondsOf({}, 1)).toEqual({
      baseline: flops,
      "split-before-gate": flops / 2,
      "split-after-gate": flops / 2,
    });
    const [tokens, slots] = [64 * 64, 128 * 64];
    expect(secondsOf({ tensorAllGather: line(1) })).toEqual({
      baseline: tokens,
      "split-before-gate": 0,
      "split-after-gate": tokens + slots,
    });
    expect(secondsOf({ fusedAllToAll: line(1) })["split-before-gate"]).toBe(2 * slots);
  });

  test("is the fastest of those that the dispatcher allows", () => {
    const speed = fc.double({ min: 1e-12, max: 1e-6, noNaN: true }).map((bytes) => line(bytes));
    fc.assert(
      fc.property(
        fc.record({
          expertAllToAll: speed,
          fusedAllToAll: speed,
          shardAllGather: speed,
          shardAllReduce: speed,
          tensorAllGather: speed,
        }),
        fc.constantFrom("dense", "ragged"),
        (models, dispatch) => {
          const job = jobOf({ dispatch });
          const { schedule, seconds } = decideSchedule(job, length, { models: modelsOf(models), secondsPerFlop: 0 });
          expect(Object.hasOwn(seconds, "split-after-gate")).toBe(dispatch === "dense");
          for (const own of Object.values(seconds)) expect(seconds[schedule]).toBeLessThanOrEqual(own);
        },
      ),
    );
    // If computation costs nothing and only the fused exchange is slow, the baseline is chosen.
    const slow = modelsOf({ fusedAllToAll: line(1) });
    expect(decideSchedule(jobOf(), length, { models: slow, secondsPerFlop: 0 }).schedule).toBe("baseline");
  });

  test("is planned for auto only, and used by jobs that allow it", () => {
    const plan = decideSchedule(jobOf(), length, { models: modelsOf(), secondsPerFlop: 1e-10 });
    expect(expertSchedulePlanSchema.parse(JSON.parse(JSON.stringify(plan)))).toEqual(plan);
    expect(formatSchedule(plan)).toContain(`experts are sharded by ${plan.schedule}; `);
    expect(isSchedulePlanned(jobOf())).toBe(true);
    expect(isSchedulePlanned(jobOf({}, 1))).toBe(false);
    const after = { ...plan, schedule: "split-after-gate" } as const;
    expect(isAllowed(jobOf(), after.schedule)).toBe(true);
    expect(isAllowed(jobOf({ dispatch: "ragged" }), after.schedule)).toBe(false);
    expect(withPlannedSchedule(jobOf(), after)).toEqual(jobOf({ shards: "split-after-gate" }));
    for (const shards of ["none", "baseline"]) {
      expect(isSchedulePlanned(jobOf({ shards }))).toBe(false);
      expect(withPlannedSchedule(jobOf({ shards }), after)).toEqual(jobOf({ shards }));
    }
  });
});
