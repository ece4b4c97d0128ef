import { normalArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { trace } from "@skein/tensor-core";
import { flatBucket } from "../test/aggregate-world.ts";
import { stepperOf } from "../test/stepper.ts";
import { dgcAggregator } from "./dgc.ts";
import { withErrorFeedback } from "./error-feedback.ts";
import { aggregatorForStep, densityPhases, denseUntil, definePhases } from "./phases.ts";
import { topKCompressor } from "./top-k.ts";

const topK = (density: number) => withErrorFeedback(topKCompressor({ density }));

describe("phases", () => {
  it("each last until the next begins", () => {
    const phases = densityPhases(
      [
        [0, 0.25],
        [10, 0.0625],
        [20, 0.001],
      ],
      (density) => dgcAggregator({ density }),
    );
    expect([0, 9, 10, 19, 20, 1e6].map((step) => aggregatorForStep(phases, step).name)).toEqual(
      [0.25, 0.25, 0.0625, 0.0625, 0.001, 0.001].map((density) => `dgc ${density}`),
    );
  });

  it("begin at 0, with increasing steps", () => {
    const begin =
      (...steps: number[]) =>
      () =>
        definePhases(steps.map((fromStep) => ({ fromStep, aggregator: topK(0.1) })));
    expect(begin(0, 5, 9)).not.toThrow();
    for (const steps of [[], [1], [0, 5, 5], [0, 6, 5], [0, 1.5], [0, NaN]])
      expect(begin(...steps)).toThrow(/must begin at step 0, and steps must increase/);
  });

  it("must have the same state, which is checked for each bucket", () => {
    const phases = definePhases<unknown>([
      { fromStep: 0, aggregator: topKCompressor({ density: 0.1 }) },
      { fromStep: 5, aggregator: topK(0.1) },
    ]);
    expect(() => trace(() => phases[0]!.aggregator.init(flatBucket(4)), [], { mesh: { data: 1 } })).toThrow(
      /the phase from step 5 has state \[residual f32\[4\]\], but the first phase has \[\]/,
    );
  });
});

describe("denseUntil", () => {
  const [n, numRanks] = [12, 3];
  const gradients = Array.from({ length: numRanks }, (_, rank) => normalArray([n], rank + 1).toNumbers());
  const mean = gradients[0]!.map((_, i) => gradients.reduce((sum, own) => sum + own[i]!, 0) / numRanks);
  const inner = topK(0.25);

  it.each([false, true])("is dense at first and passes the state on unchanged; in halves: %s", (inHalves) => {
    const [dense, later] = definePhases(denseUntil(7, inner));
    expect([dense!.fromStep, later!.fromStep]).toEqual([0, 7]);
    const world = stepperOf(dense!.aggregator, flatBucket(n), numRanks, { keyed: false, inHalves });
    const after = stepperOf(inner, flatBucket(n), numRanks, { keyed: false });
    expect(world.before).toEqual(after.before);
    // An arbitrary residual is neither sent nor changed.
    const { state } = after.step(gradients, after.init());
    const stepped = world.step(gradients, state);
    stepped.mean.forEach((own) => own.forEach((value, i) => expect(value).toBeCloseTo(mean[i]!, 6)));
    stepped.sent.forEach((own, rank) => expect([...own]).toEqual(gradients[rank]));
    expect(stepped.state.map(([leaf]) => leaf!.data)).toEqual(state.map(([leaf]) => leaf!.data));
    expect(dense!.aggregator.bytesSent(flatBucket(n), numRanks)).toBe((4 / 3) * 4 * n);
  });

  it("adds no phase for step 0", () => {
    expect(denseUntil(0, inner)).toEqual([{ fromStep: 0, aggregator: inner }]);
    expect(() => denseUntil(-1, inner)).toThrow(/step -1 is not an integer from 0/);
  });
});
