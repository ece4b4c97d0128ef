import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { collectiveSeconds } from "../../collective-model.ts";
import {
  planParmSchedule,
  overlappedSeconds,
  parmCosts,
  type ParmLayer,
  type ParmModels,
  type ParmSchedule,
} from "./parm.ts";
import { times } from "../../../test/moe-layers.ts";
import { models } from "../../../test/profiles.ts";

const layer: ParmLayer = {
  numTokens: 1024,
  hidden: 16,
  expertHidden: 64,
  numProducts: 2,
  expertsPerToken: 2,
  capacityFactor: 1.5,
  bytesPerElement: 2,
  numTensorRanks: 4,
  numShards: 8,
};

const counts = (most: number): fc.Arbitrary<number> => fc.integer({ min: 1, max: most });
const layers: fc.Arbitrary<ParmLayer> = fc.record({
  numTokens: counts(4096),
  hidden: counts(64),
  expertHidden: counts(64),
  numProducts: counts(3),
  expertsPerToken: counts(8),
  capacityFactor: fc.constantFrom(0.125, 0.5, 1, 1.25, 2),
  bytesPerElement: fc.constantFrom(1, 2, 4),
  numTensorRanks: fc.constantFrom(1, 2, 4, 8),
  numShards: fc.constantFrom(1, 2, 4, 8),
});
const groups: fc.Arbitrary<ParmModels> = fc.record({
  expertAllToAll: models,
  fusedAllToAll: models,
  fusedWorldSize: counts(64),
  shardAllGather: models,
  shardAllReduce: models,
  tensorAllGather: models,
});

const free = { startupSeconds: 0, secondsPerByte: 0 };
const noCost: ParmModels = {
  expertAllToAll: free,
  fusedAllToAll: free,
  fusedWorldSize: 8,
  shardAllGather: free,
  shardAllReduce: free,
  tensorAllGather: free,
};

describe("parmCosts", () => {
  // 1024 tokens of 32 bytes, 3072 slots: bytes of each group's collectives, computed by hand.
  test.each([
    ["expertAllToAll", { baseline: 2 * 3072 * 32 * 8, S1: 0, S2: 0 }],
    ["fusedAllToAll", { baseline: 0, S1: 2 * 3072 * 32 * 2, S2: 2 * 3072 * 32 * 2 }],
    ["shardAllGather", { baseline: 1024 * 32 * 8, S1: 0, S2: 0 }],
    ["shardAllReduce", { baseline: 3072 * 32 * 8, S1: 0, S2: 0 }],
    ["tensorAllGather", { baseline: 0, S1: 1024 * 32, S2: 3072 * 32 }],
  ] as const)("counts the bytes of %s", (group, bytes) => {
    const costs = parmCosts(layer, { ...noCost, [group]: { startupSeconds: 0, secondsPerByte: 1 } });
    for (const schedule of ["baseline", "S1", "S2"] as const)
      expect(costs[schedule].communicationSeconds).toBe(bytes[schedule]);
  });

  test("with own tokens S1 gathers nothing, and the other schedules gather tokens first", () => {
    fc.assert(
      fc.property(layers, groups, (some, groupModels) => {
        const [same, own] = [false, true].map((hasOwnTokens) => parmCosts({ ...some, hasOwnTokens }, groupModels));
        const bytes = some.numTokens * some.hidden * some.bytesPerElement;
        const gathered = collectiveSeconds(groupModels.tensorAllGather, bytes);
        // Equal up to rounding errors of the sums.
        const expectAdded = (schedule: ParmSchedule, seconds: number): void => {
          const [before, after] = [same![schedule].communicationSeconds, own![schedule].communicationSeconds];
          expect(Math.abs(after - before - seconds)).toBeLessThanOrEqual(1e-12 * Math.max(before, after));
        };
        expectAdded("S1", -gathered);
        for (const schedule of ["baseline", "S2"] as const) expectAdded(schedule, gathered);
      }),
    );
  });

  test("the baseline computes experts once per rank with the same tokens", () => {
    fc.assert(
      fc.property(layers, groups, (some, groupModels) => {
        const costs = parmCosts(some, groupModels, 1);
        expect(costs.baseline.expertFlops).toBe(some.numTensorRanks * costs.S1.expertFlops);
        expect(costs.S2.expertFlops).toBe(costs.S1.expertFlops);
        for (const { seconds, communicationSeconds, expertFlops } of Object.values(costs))
          expect(seconds).toBe(communicationSeconds + expertFlops);
      }),
    );
    // 3072 slots · 8 shards / 4 ranks; each expert shard has two products of 16 × 64 / 8.
    expect(parmCosts(layer, noCost).S1.expertFlops).toBe(2 * 2 * 3072 * 2 * 16 * 8);
  });

  test("S2 is not slower than S1 if it gathers no more, and the fastest schedule is chosen", () => {
    const chosen = new Set<string>();
    fc.assert(
      fc.property(layers, groups, fc.constantFrom(0, 1e-3), (some, groupModels, secondsPerFlop) => {
        const costs = parmCosts(some, groupModels, secondsPerFlop);
        if (some.expertsPerToken * some.capacityFactor <= 1)
          expect(costs.S2.seconds).toBeLessThanOrEqual(costs.S1.seconds * (1 + 1e-12));
        const schedule = planParmSchedule(costs);
        chosen.add(schedule);
        expect(costs[schedule].seconds).toBe(Math.min(...Object.values(costs).map(({ seconds }) => seconds)));
      }),
      { numRuns: 1000 },
    );
    expect(chosen.size).toBe(3);
  });

  test("S1 is better with many experts per token, S2 with few", () => {
    const line = { startupSeconds: 0, secondsPerByte: 1 };
    const links = { ...noCost, fusedAllToAll: line, tensorAllGather: line, shardAllReduce: line };
    expect(planParmSchedule(parmCosts({ ...layer, numShards: 4 }, links))).toBe("S2");
    expect(planParmSchedule(parmCosts({ ...layer, numShards: 4, expertsPerToken: 8 }, links))).toBe("S1");
  });

  test("rejects invalid sizes", () => {
    expect(() => parmCosts({ ...layer, numShards: 0 }, noCost)).toThrow(
      /numShards is 0, but must be a whole number from 1/,
    );
    expect(() => parmCosts({ ...layer, capacityFactor: NaN }, noCost)).toThrow(/capacityFactor is NaN/);
    expect(() => parmCosts(layer, { ...noCost, fusedWorldSize: 1.5 })).toThrow(/fusedWorldSize is 1.5/);
    expect(() => parmCosts(layer, noCost, -1)).toThrow(/secondsPerFlop is -1/);
  });
});

test("overlap is a pipeline of two links, chunk by chunk", () => {
  fc.assert(
    fc.property(times, times, counts(16), (allToAll, allGather, numSteps) => {
      let [received, broadcast] = [0, 0];
      for (let step = 0; step < numSteps; step++) {
        received += allToAll;
        broadcast = Math.max(broadcast, received) + allGather;
      }
      expect(overlappedSeconds(allToAll * numSteps, allGather * numSteps, numSteps)).toBe(broadcast);
    }),
  );
});
