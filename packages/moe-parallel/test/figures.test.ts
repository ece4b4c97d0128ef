import { cast, full, NdArray, slice } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { byToken, capacityByFactor, type ExpertChoices, defineGate, type Gate, switchGate } from "../src/index.ts";
import { layerOf, ranksOf } from "./layers.ts";
import { initRanks, stepOnRanks } from "./step.ts";
import { width } from "./tokens.ts";

describe("figures", () => {
  const numExperts = 4;
  const gate = switchGate({ width, numExperts }) as Gate;

  test("report loads, dropped entries and entropy", () => {
    const layer = layerOf({ gate, capacity: capacityByFactor({ factor: 1 }) });
    // Zeros tie, and go to the first expert: a quarter of the tokens gets a slot.
    const x = NdArray.from(new Array(24).fill(0), [8, 3], "f32");
    const { figures } = stepOnRanks(() => layer, initRanks(layer, 1), ranksOf(x, 1))[0]!;
    expect(figures.load_E.toNumbers()).toEqual([8, 0, 0, 0]);
    expect(figures.droppedShare.item()).toBe(0.75);
    expect(figures.greatestLoad.item()).toBe(8);
    expect(figures.entropy.item()).toBeCloseTo(Math.log(4), 6);
  });

  test("cover all ranks", () => {
    const layer = layerOf({ gate, capacity: capacityByFactor({ factor: 2 }) });
    const x = NdArray.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 5, -1, 2], [4, 3], "f32");
    const results = stepOnRanks(() => layer, initRanks(layer, 2), ranksOf(x, 2));
    for (const { figures } of results) {
      const loads = figures.load_E.toNumbers();
      expect(loads.reduce((a, b) => a + b, 0)).toBe(4);
      expect(loads[0]).toBeGreaterThanOrEqual(3);
      expect(figures.greatestLoad.item()).toBe(2);
      // One slot for two tokens of the first rank; the second rank has the same number, or two different experts.
      expect(figures.droppedShare.item()).toBe(loads[0] === 4 ? 0.5 : 0.25);
    }
  });
});

/** Returns a gate that reads its choices from the first numbers of each token. */
const writtenGate = (numChoices: number): Gate =>
  defineGate({
    name: "writtenGate",
    width,
    numExperts: 4,
    init: () => ({ params: {}, state: {} }),
    route: (_, __, x_TD) => {
      const numTokens = x_TD.shape[0]!;
      const even_TE = full([numTokens, 4], 0.25);
      const choices: ExpertChoices = {
        kind: "choices",
        choices_TK: cast(slice(x_TD, [0, 0], [numTokens, numChoices]), "i32"),
        weights_TK: full([numTokens, numChoices], 1 / numChoices),
      };
      return { routing: choices, scores: { logits_TE: even_TE, probabilities_TE: even_TE } };
    },
  }) as Gate;

test("the duplication rate counts rows whose token is sent to their rank in another row, without entries that have no slot", () => {
  const numTokens = 4;
  const token = fc.shuffledSubarray([0, 1, 2, 3], { minLength: width, maxLength: width });
  fc.assert(
    fc.property(
      fc.array(token, { minLength: numTokens, maxLength: numTokens }),
      fc.constantFrom(1, 2, 4),
      fc.integer({ min: 1, max: width }),
      fc.constantFrom(1, 2, 4),
      fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4, maxLength: 4 }),
      (tokens, numRanks, numChoices, slots, placement) => {
        const capacity = () => ({ slots, overflow: "drop", dropOrder: byToken }) as const;
        const layer = layerOf({ gate: writtenGate(numChoices), capacity, placement });
        const x = NdArray.from(tokens.flat(), [numTokens, width], "f32");
        const each = numTokens / numRanks;
        let [rows, targets] = [0, 0];
        for (let rank = 0; rank < numRanks; rank++) {
          const free = [slots, slots, slots, slots];
          for (const choices of tokens.slice(rank * each, (rank + 1) * each)) {
            const kept = choices.slice(0, numChoices).filter((expert) => free[expert]!-- > 0);
            rows += kept.length;
            targets += new Set(kept.map((expert) => Math.floor((placement[expert]! * numRanks) / 4))).size;
          }
        }
        for (const { figures } of stepOnRanks(() => layer, initRanks(layer, numRanks), ranksOf(x, numRanks)))
          expect(figures.duplicationRate.item()).toBeCloseTo((rows - targets) / rows, 6);
      },
    ),
    { numRuns: examples(30, 300) },
  );
});
