import fc from "fast-check";
import { expect, test } from "vitest";
import { pulseReader } from "./pulse.ts";

test("a thread is idle for the time without a beat, less the time without looks", () => {
  const looks = fc.array(fc.record({ gap: fc.integer({ min: 1, max: 10_000 }), beat: fc.boolean() }), {
    minLength: 1,
    maxLength: 40,
  });
  fc.assert(
    fc.property(looks, (all) => {
      const beats = new Int32Array(new SharedArrayBuffer(4));
      let now = 0;
      const idle = pulseReader(beats, 2000, () => now);
      let expected = 0;
      for (const { gap, beat } of all) {
        now += gap;
        if (beat) beats[0]! += 1;
        expected = beat ? 0 : expected + Math.min(gap, 2000);
        expect(idle()).toBe(expected);
      }
    }),
  );
});
