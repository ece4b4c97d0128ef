import fc from "fast-check";
import { expect, test } from "vitest";
import { BinaryHeap } from "./binary-heap.ts";

test("law: pops the first entry after any pushes and pops, and loses none", () => {
  const taking = Symbol("take");
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constant(taking))), (acts) => {
      const heap = new BinaryHeap<number>((a, b) => a < b);
      const there: number[] = [];
      for (const act of acts) {
        if (typeof act === "number") {
          heap.push(act);
          there.push(act);
        } else expect(heap.pop()).toBe(there.shift());
        there.sort((a, b) => a - b);
        expect([heap.length, heap.first]).toEqual([there.length, there[0]]);
      }
    }),
  );
});
