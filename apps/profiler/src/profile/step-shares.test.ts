import { type RankStep, worldSteps } from "@skein/report";
import type { Span, Track } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attribute } from "../trace/attribution.ts";
import { madeUpRun, span } from "./made-up-run.ts";
import { recordingCost, stepShares } from "./step-shares.ts";

const free = recordingCost(0, "host");
const rankStep = (rank: number, spans: readonly Span[], until = 10): RankStep => ({
  rank,
  number: 1,
  whole: span("steps", "step 1", 0, until),
  spans,
});
const total = (shares: ReturnType<typeof stepShares>): number =>
  [...shares.operators.values(), ...shares.outside.map(({ share }) => share)].reduce((sum, share) => sum + share, 0);

describe("a moment counts once", () => {
  test("as the kernel before the wait, the inner span before the outer, the gap if there is no span", () => {
    const { compute, waiting, data, host, between } = attribute(
      rankStep(0, [
        span("data", "next batch", 0, 1),
        span("host", "start", 1, 2),
        span("compute", "a", 1.5, 4),
        span("compute", "b", 2, 3),
        span("waiting", "w", 3.5, 6),
        span("collectives", "c", 0, 10),
        span("compute", "beyond", 9, 12),
      ]),
    );
    const milliseconds = [
      ...compute,
      ["waiting", waiting],
      ["data", data],
      ["host", host],
      ["between", between],
    ] as const;
    expect(milliseconds.map(([name, seconds]) => [name, Number((1000 * seconds).toFixed(6))])).toEqual([
      ["a", 1.5],
      ["b", 1],
      ["beyond", 1],
      ["waiting", 2],
      ["data", 1],
      ["host", 0.5],
      ["between", 3],
    ]);
  });

  test("as the wait before all kernels, if a device does not time kernels", () => {
    const spans = [span("compute", "all kernels", 1, 10), span("waiting", "w", 3, 5)];
    expect(attribute(rankStep(0, spans), "none").waiting).toBeCloseTo(0.002, 9);
    expect(attribute(rankStep(0, spans), "device").waiting).toBe(0);
  });

  test("all parts add up to the step, and none is negative, for any spans", () => {
    const moment = fc.double({ min: -2, max: 14, noNaN: true });
    const anySpan = fc
      .tuple(
        fc.constantFrom<Track>("compute", "waiting", "data", "host", "collectives"),
        fc.constantFrom("a", "b", "c"),
        moment,
        moment,
      )
      .map(([track, name, one, other]) => span(track, name, Math.min(one, other), Math.max(one, other)));
    fc.assert(
      fc.property(fc.array(anySpan, { maxLength: 12 }), (spans) => {
        const { compute, waiting, data, host, between } = attribute(rankStep(0, spans));
        const parts = [...compute.values(), waiting, data, host, between];
        for (const part of parts) expect(part).toBeGreaterThanOrEqual(0);
        expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(0.01, 12);
      }),
    );
  });
});

describe("shares of all ranks' time", () => {
  test("of a made-up run", () => {
    const { operators, outside } = stepShares(worldSteps(madeUpRun(2)), free);
    const percent = (share: number): number => Number((100 * share).toFixed(6));
    expect([...operators].map(([name, share]) => [name, percent(share)])).toEqual([
      ["matmul layer", 25], // 2 and 3 of 10 ms
      ["matmul layer/backward", 30],
      ["fused update", 5],
    ]);
    expect(
      outside.map(({ kind, share, seconds }) => [kind, percent(share), Number(seconds.median.toFixed(6))]),
    ).toEqual([
      ["waiting", 25, 0.003],
      ["between", 10, 0.001],
      ["data", 5, 0.0005],
      ["host", 0, 0],
    ]);
  });

  test("a step lengthened by a pause counts no more than in a median", () => {
    const steps = worldSteps(madeUpRun(1));
    const paused = steps[1]!.map((one) => ({ ...one, whole: { ...one.whole, endSeconds: one.whole.endSeconds + 10 } }));
    const more = [...steps, ...steps];
    expect(stepShares([...more, paused], free)).toMatchObject({ operators: stepShares(more, free).operators });
  });

  test("add up to the whole, with negative parts from recording cut to 0, for any ranks and steps", () => {
    const kernels = fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.nat({ max: 30 }), fc.nat({ max: 5 })), {
      maxLength: 8,
    });
    const steps = fc.array(fc.tuple(kernels, kernels), { minLength: 1, maxLength: 6 }).map((all) =>
      all.map((ranks) =>
        ranks.map((spans, rank) =>
          rankStep(
            rank,
            spans.map(([name, begin, length]) =>
              span(length === 0 ? "waiting" : "compute", name, begin / 3, begin / 3 + length),
            ),
          ),
        ),
      ),
    );
    fc.assert(
      fc.property(
        steps,
        fc.constantFrom("host" as const, "device" as const, "none" as const),
        fc.constantFrom(0, 1e-5, 1),
        (world, clock, overhead) => {
          const shares = stepShares(world, recordingCost(overhead, clock));
          const nothingLeft = overhead === 1 && total(shares) === 0;
          if (!nothingLeft) expect(total(shares)).toBeCloseTo(1, 9);
          for (const share of shares.operators.values()) expect(share >= 0 && share <= 1).toBe(true);
        },
      ),
    );
  });

  test("recording costs nothing in kernels timed by a device", () => {
    const [rank] = madeUpRun(1);
    const [own, device] = (["host", "device"] as const).map(
      (clock) => stepShares(worldSteps([rank!]), recordingCost(2e-4, clock)).operators.get("fused update")!,
    );
    // 0.1 ms is subtracted for each of four kernels, and for each of seven spans outside of kernels
    expect(own).toBeCloseTo(0.4 / (10 - 7 * 0.1 - 4 * 0.1), 9);
    expect(device).toBeCloseTo(0.5 / (10 - 1), 9); // recording takes 1.4 ms, but only 1 ms is between kernels
  });
});
