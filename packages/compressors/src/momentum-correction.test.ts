import { normalArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { flatBucket } from "../test/aggregate-world.ts";
import { stepperOf, type Stepped } from "../test/stepper.ts";
import type { Aggregator } from "./aggregator.ts";
import { dgcAggregator } from "./dgc.ts";
import { withErrorFeedback } from "./error-feedback.ts";
import { withMomentumCorrection } from "./momentum-correction.ts";
import { topKCompressor } from "./top-k.ts";

const [n, numRanks, numSteps] = [20, 3, 12];
const gradient = (rank: number, step: number): number[] => normalArray([n], 1 + rank + 10 * step).toNumbers();

const walk = (
  aggregator: Aggregator,
  of = gradient,
): (Stepped & { readonly leaf: (path: string, rank: number) => number[] })[] => {
  const world = stepperOf(aggregator, flatBucket(n), numRanks, { keyed: false });
  let state = world.init();
  return Array.from({ length: numSteps }, (_, step) => {
    const stepped = world.step(
      Array.from({ length: numRanks }, (__, rank) => of(rank, step)),
      state,
    );
    state = stepped.state as typeof state;
    return { ...stepped, leaf: (path, rank) => [...stepped.state[rank]![world.paths.indexOf(path)]!.data] };
  });
};

describe("withMomentumCorrection", () => {
  it("equals error feedback bit for bit without momentum", () => {
    const plain = walk(withErrorFeedback(topKCompressor({ density: 0.2 })));
    const corrected = walk(withMomentumCorrection(topKCompressor({ density: 0.2 }), { momentum: 0 }));
    corrected.forEach(({ mean, leaf }, step) => {
      expect(mean[0]).toEqual(plain[step]!.mean[0]);
      expect(leaf("unsent", 1)).toEqual(plain[step]!.leaf("residual", 1));
    });
  });

  it("follows v ← m·v + g, a ← a + v, with both cleared for sent entries", () => {
    const steps = walk(dgcAggregator({ density: 0.1, momentum: 0.7 }));
    for (let rank = 0; rank < numRanks; rank++) {
      const [velocity, unsent] = [new Array<number>(n).fill(0), new Array<number>(n).fill(0)];
      steps.forEach(({ sent, leaf }, step) => {
        gradient(rank, step).forEach((g, i) => {
          velocity[i] = 0.7 * velocity[i]! + g;
          unsent[i]! += velocity[i]!;
        });
        // biome-ignore format: short
        const largest = unsent.map((_, i) => i).sort((a, b) => Math.abs(unsent[b]!) - Math.abs(unsent[a]!)).slice(0, 2);
        for (const i of largest) {
          expect(sent[rank]![i]).toBeCloseTo(unsent[i]!, 4);
          velocity[i] = unsent[i] = 0;
        }
        leaf("velocity", rank).forEach((v, i) => expect(v).toBeCloseTo(velocity[i]!, 4));
        leaf("unsent", rank).forEach((a, i) => expect(a).toBeCloseTo(unsent[i]!, 4));
      });
    }
  });

  it("loses nothing: means and unsent parts sum to the velocities", () => {
    const steps = walk(withMomentumCorrection(topKCompressor({ density: 0.1 }), { momentum: 0.5 }));
    const velocities = new Array<number>(n).fill(0);
    const means = new Array<number>(n).fill(0);
    steps.forEach(({ mean, sent }, step) => {
      for (let rank = 0; rank < numRanks; rank++) {
        const before = step === 0 ? new Array<number>(n).fill(0) : steps[step - 1]!.leaf("velocity", rank);
        gradient(rank, step).forEach((g, i) => (velocities[i]! += (0.5 * before[i]! + g) / numRanks));
        sent[rank]!.forEach((s, i) => expect(s === 0 || steps[step]!.leaf("velocity", rank)[i] === 0).toBe(true));
      }
      mean[0]!.forEach((value, i) => (means[i]! += value));
    });
    velocities.forEach((v, i) => {
      const kept = [0, 1, 2].reduce((sum, rank) => sum + steps.at(-1)!.leaf("unsent", rank)[i]! / numRanks, 0);
      expect(means[i]! + kept).toBeCloseTo(v, 4);
    });
  });

  it("clips each rank's gradient to clipNorm · √P, even huge ones, and leaves small ones unchanged", () => {
    const clipped = (size: number): number[] =>
      walk(withMomentumCorrection(topKCompressor({ density: 1 }), { momentum: 0.9, clipNorm: 2 }), (rank, step) =>
        gradient(rank, step).map((g) => g * size),
      )[0]!.leaf("velocity", 0); // everything is sent, so the velocity is masked
    expect(clipped(1)).toEqual(new Array<number>(n).fill(0));
    const sentNorm = (size: number): number => {
      const [first] = walk(
        withMomentumCorrection(topKCompressor({ density: 1 }), { momentum: 0.9, clipNorm: 2 }),
        (rank, step) => gradient(rank, step).map((g) => g * size),
      );
      return Math.hypot(...first!.sent[0]!);
    };
    for (const size of [1, 1e10, 1e30]) expect(sentNorm(size)).toBeCloseTo(2 * Math.sqrt(numRanks), 5);
    expect(sentNorm(1e-3)).toBeCloseTo(1e-3 * Math.hypot(...gradient(0, 0)), 8);
    expect(sentNorm(0)).toBe(0);
  });

  it("does not hide non-finite entries by clipping", () => {
    for (const bad of [NaN, Infinity, -Infinity]) {
      const [first] = walk(dgcAggregator({ density: 0.1, clipNorm: 1 }), (rank, step) =>
        gradient(rank, step).map((g, i) => (rank === 1 && i === 3 ? bad : g)),
      );
      for (const mean of first!.mean) expect(mean.every(Number.isFinite)).toBe(false);
    }
  });

  it("rejects invalid factors and norms", () => {
    expect(() => dgcAggregator({ density: 0.1, momentum: 1 })).toThrow(/momentum 1 is not in \[0, 1\)/);
    expect(() => dgcAggregator({ density: 0.1, clipNorm: 0 })).toThrow(/clipNorm 0 is not positive/);
  });
});
