import fc from "fast-check";
import { expect, test } from "vitest";
import { profileOf } from "../test/profiles.ts";
import { fitSlowdown } from "./fit-slowdown.ts";
import { onePerTensor } from "./gradient-profile.ts";
import { simultaneousTimeline } from "./simultaneous-timeline.ts";

const sizes = [4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

test("recovers the slowdown from a timeline of two concurrent collectives, for any link", () => {
  const links = fc.record({
    startupSeconds: fc.double({ min: 1e-6, max: 1e-2, noNaN: true }),
    secondsPerByte: fc.double({ min: 1e-11, max: 1e-6, noNaN: true }),
  });
  fc.assert(
    fc.property(links, fc.double({ min: 1, max: 3, noNaN: true }), (link, slowdown) => {
      const together = sizes.map((bytes) => {
        const profile = profileOf([bytes, bytes].map((each) => ({ bytes: each, backwardSeconds: 0 })));
        return {
          bytes,
          seconds: simultaneousTimeline(profile, onePerTensor(profile), link, [1, slowdown]).communicationEndSeconds,
        };
      });
      expect(fitSlowdown(link, together)).toBeCloseTo(slowdown, 6);
      // Noise dominates the times of messages whose start-up dominates: slow small messages must not affect the result.
      const noisy = together.map((sample, i) => (i === 0 ? { ...sample, seconds: sample.seconds * 50 } : sample));
      if (link.secondsPerByte * sizes[3]! >= link.startupSeconds)
        expect(fitSlowdown(link, noisy)).toBeCloseTo(slowdown, 6);
    }),
  );
});

test("the slowdown is at least 1, and 1 if transfers take no time", () => {
  expect(fitSlowdown({ startupSeconds: 0, secondsPerByte: 1 }, [{ bytes: 10, seconds: 8 }])).toBe(1);
  expect(fitSlowdown({ startupSeconds: 1, secondsPerByte: 0 }, [{ bytes: 10, seconds: 8 }])).toBe(1);
});

test("rejects invalid samples", () => {
  const link = { startupSeconds: 1, secondsPerByte: 1 };
  expect(() => fitSlowdown(link, [])).toThrow("got 0 samples");
  expect(() => fitSlowdown(link, [{ bytes: 10, seconds: Number.NaN }])).toThrow("10 bytes in NaN s");
});
