import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { inLogicalOrder } from "./logical-experts.ts";

const array = (values: readonly number[], shape: readonly number[], dtype: "f32" | "i32" = "f32"): NdArray =>
  NdArray.from([...values], [...shape], dtype);

const model = {
  experts: { layers: [{ name: "block-1", params: "blocks.1.experts", state: "experts.0.own" }], choices: () => [] },
};

test("returns experts in the order of their numbers, and leaves the rest unchanged", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }).chain((count) =>
        fc.shuffledSubarray(
          Array.from({ length: count }, (_, i) => i),
          { minLength: count },
        ),
      ),
      (placeOf) => {
        const numExperts = placeOf.length;
        const valuesOf = (expert: number): number[] => [10 * expert, 10 * expert + 1, 10 * expert + 2];
        const slots: number[][] = [];
        placeOf.forEach((place, expert) => (slots[place] = valuesOf(expert)));
        const gate = array(placeOf, [1, numExperts]);
        const params = (up: readonly number[][]) => ({
          blocks: [
            { experts: array(up.flat(), [numExperts, 3]) },
            { experts: { gate: { weight_DE: gate }, experts: { up_DF: array(up.flat(), [numExperts, 3, 1]) } } },
          ],
        });
        const loads = array(placeOf, [numExperts]);
        const state = (places: readonly number[]) => ({
          experts: [{ own: { placeOf_E: array(places, [numExperts], "i32"), meanLoad_E: loads } }],
        });
        const inOrder = inLogicalOrder(model as never, { params: params(slots), state: state(placeOf) });
        const [first, second] = (inOrder.params as ReturnType<typeof params>).blocks as never as [
          { experts: NdArray },
          { experts: { gate: { weight_DE: NdArray }; experts: { up_DF: NdArray } } },
        ];
        expect(second.experts.experts.up_DF.toNumbers()).toEqual(placeOf.flatMap((_, expert) => valuesOf(expert)));
        expect(second.experts.experts.up_DF.shape).toEqual([numExperts, 3, 1]);
        expect(second.experts.gate.weight_DE.toNumbers()).toEqual(placeOf);
        expect(first.experts.toNumbers()).toEqual(slots.flat()); // unchanged: belongs to another block
        expect(inOrder.state).toEqual(state(placeOf.map((_, expert) => expert)));
      },
    ),
    { seed: 1 },
  );
});

test("returns the saved weights of a model without experts", () => {
  const weights = { params: { w: array([1, 2], [2]) }, state: {} };
  expect(inLogicalOrder({}, weights)).toEqual(weights);
});
