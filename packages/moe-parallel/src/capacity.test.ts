import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  capacityByFactor,
  type CapacityByFactorOptions,
  capacityByMaximum,
  type CapacityRule,
  type CapacitySizes,
} from "./capacity.ts";

const sizes = (numTokens: number, numExperts: number, numChoices: number): CapacitySizes => ({
  numTokens,
  numExperts,
  numChoices,
});

const slotsOf = (rule: CapacityRule, own: CapacitySizes): number => rule(own).slots;

/**
 * Capacity formulas of four other MoE systems, each in the system's own order of operations, with f = q/8, which is
 * exact.
 */
const systems: readonly {
  readonly name: string;
  readonly options: Omit<CapacityByFactorOptions, "factor">;
  readonly formula: (factor: number, own: CapacitySizes) => number;
}[] = [
  {
    name: "Tutel",
    options: { rounding: "choices-down" },
    formula: (f, { numTokens, numExperts, numChoices }) =>
      numChoices * Math.trunc(f * Math.ceil(numTokens / numExperts)),
  },
  {
    name: "DeepSpeed",
    options: { rounding: "slots-up", minimum: 8 },
    formula: (f, { numTokens, numExperts, numChoices }) =>
      Math.max(8, Math.ceil((numTokens / numExperts) * f * numChoices)),
  },
  {
    name: "Megatron",
    options: { rounding: "slots-up" },
    formula: (f, { numTokens, numExperts, numChoices }) => Math.ceil(((numChoices * numTokens) / numExperts) * f),
  },
  {
    name: "FastMoE",
    options: { rounding: "tokens-up" },
    formula: (f, { numTokens, numExperts, numChoices }) =>
      Math.floor((Math.ceil(f * numTokens) * numChoices) / numExperts),
  },
];

// Numbers of experts that are powers of two, so that no quotient is rounded before the formula rounds it.
const anySizes = fc
  .record({
    numTokens: fc.integer({ min: 1, max: 500 }),
    numExperts: fc.constantFrom(1, 2, 4, 8),
    k: fc.constantFrom(1, 2),
  })
  .map(({ numTokens, numExperts, k }) => sizes(numTokens, numExperts, Math.min(k, numExperts)));

test.each(systems)("settings of the table give as many slots as $name, up to the number of tokens", (system) => {
  fc.assert(
    fc.property(anySizes, fc.integer({ min: 1, max: 24 }), (own, eighths) => {
      const expected = Math.max(1, system.formula(eighths / 8, own));
      const slots = slotsOf(capacityByFactor({ factor: eighths / 8, ...system.options }), own);
      expect(slots).toBe(Math.min(expected, own.numTokens));
    }),
    { numRuns: examples(200, 5000) },
  );
});

test("from f = E / K on there are as many slots as tokens, so nothing is dropped for any choices", () => {
  fc.assert(
    fc.property(anySizes, fc.constantFrom(1, 1.25, 3), (own, more) => {
      const factor = (more * own.numExperts) / own.numChoices;
      for (const rounding of ["slots-up", "choices-down", "tokens-up"] as const)
        expect(slotsOf(capacityByFactor({ factor, rounding }), own)).toBe(own.numTokens);
      // Not much less is enough, because all tokens may choose the same experts.
      expect(slotsOf(capacityByFactor({ factor: factor / more / 2 }), own)).toBe(Math.ceil(own.numTokens / 2));
    }),
    { numRuns: examples(100, 1000) },
  );
});

test("factors that floating point rounds up give the exact number of slots", () => {
  expect(slotsOf(capacityByFactor({ factor: 1.1 }), sizes(40, 4, 1))).toBe(11);
  expect(slotsOf(capacityByFactor({ factor: 1.15, rounding: "choices-down" }), sizes(400, 4, 1))).toBe(115);
  expect(slotsOf(capacityByFactor({ factor: 0.07, rounding: "tokens-up" }), sizes(100, 1, 1))).toBe(7);
});

test("slots are rounded up to a multiple at the end, with at least one slot", () => {
  expect(slotsOf(capacityByFactor({ factor: 1, multipleOf: 8 }), sizes(36, 4, 1))).toBe(16);
  expect(slotsOf(capacityByFactor({ factor: 9, multipleOf: 8 }), sizes(36, 4, 1))).toBe(40);
  expect(slotsOf(capacityByFactor({ factor: 0.01 }), sizes(4, 4, 1))).toBe(1);
});

test("the rule by maximum gives as many slots as tokens, or the bound", () => {
  expect(capacityByMaximum()(sizes(36, 4, 1))).toMatchObject({ slots: 36, overflow: "refuse" });
  expect(slotsOf(capacityByMaximum({ bound: 5 }), sizes(36, 4, 1))).toBe(5);
  expect(slotsOf(capacityByMaximum({ bound: 50 }), sizes(36, 4, 1))).toBe(36);
});

test("rejects invalid settings", () => {
  expect(() => capacityByFactor({ factor: 0 })).toThrow(/factor is 0; use a finite number above 0, for example 1.25/);
  expect(() => capacityByFactor({ factor: NaN })).toThrow(/factor is NaN/);
  expect(() => capacityByFactor({ factor: 1, minimum: 0 })).toThrow(/minimum is 0; use a whole number from 1/);
  expect(() => capacityByFactor({ factor: 1, rounding: "up" as never })).toThrow(
    /rounding is up; use slots-up, choices-down, tokens-up/,
  );
  expect(() => capacityByMaximum({ bound: 2.5 })).toThrow(/bound is 2.5/);
});
