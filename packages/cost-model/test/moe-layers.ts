import fc from "fast-check";
import { models } from "./profiles.ts";
import type { ChunkSeconds, LayerCollective, LayerSchedule, MoeLayerPass } from "../src/planners.ts";

/** Integers, so that every sum is exact; often small, so that comparisons meet equal values. */
export const times: fc.Arbitrary<number> = fc.oneof(fc.nat(4), fc.nat(60), fc.nat(4000));

export const chunks: fc.Arbitrary<ChunkSeconds> = fc.record({
  allToAll: times,
  allGather: times,
  reduceScatter: times,
  experts: times,
});

export const schedules: fc.Arbitrary<LayerSchedule> = fc.record({
  numChunks: fc.integer({ min: 1, max: 9 }),
  gradientSeconds: times,
  intraNodeOrder: fc.constantFrom("gathers-first", "alternating"),
});

const collectives: fc.Arbitrary<LayerCollective> = fc.record({
  model: models,
  bytes: times,
});

export const passes: fc.Arbitrary<MoeLayerPass> = fc.record({
  allToAll: collectives,
  allGather: collectives,
  reduceScatter: collectives,
  experts: fc.record({ startupSeconds: fc.nat(12), workSeconds: times }),
});
