import fc from "fast-check";
import { expect, test } from "vitest";
import { EventQueue } from "./event-queue.ts";

test("events are ordered by time, and by insertion for equal times, also with interleaved insertions", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 1, 2, undefined, undefined), { maxLength: 40, size: "max" }), (actions) => {
      const queue = new EventQueue<number, number>((a, b) => a - b);
      const queued: { readonly at: number; readonly event: number }[] = [];
      const first = () => queued.toSorted((a, b) => a.at - b.at || a.event - b.event)[0];
      for (const [event, at] of actions.entries()) {
        expect(queue.nextAt).toBe(first()?.at);
        if (at === undefined) {
          const expected = first();
          expect(queue.pop()).toBe(expected?.event);
          if (expected) queued.splice(queued.indexOf(expected), 1);
        } else {
          queued.push({ at, event });
          queue.push(at, event);
        }
        expect(queue.length).toBe(queued.length);
      }
      expect(queue.count).toBe(actions.filter((at) => at !== undefined).length);
    }),
  );
});
