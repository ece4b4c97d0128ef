import fc from "fast-check";
import { expect, test } from "vitest";
import { codecPays } from "./codec-pays.ts";

const codec = { encodeBytesPerSecond: 10e9, decodeBytesPerSecond: 10e9, ratio: 1.4 };

test.each([
  [1e9, true], // 1 − 1/1.4 = 0.286; 1e9 · 2e-10 = 0.2
  [1.4e9, true],
  [1.45e9, false],
  [10e9, false],
])("on a link of %d bytes per second", (bytesPerSecondOfLink, pays) => {
  expect(codecPays({ bytesPerSecondOfLink, ...codec })).toBe(pays);
});

test("compression that saves nothing is never worth it", () => {
  expect(codecPays({ bytesPerSecondOfLink: 1, ...codec, ratio: 1 })).toBe(false);
  expect(codecPays({ bytesPerSecondOfLink: 1, ...codec, ratio: 0.9 })).toBe(false);
});

test("compression is worth it exactly if it takes less time, and then on every slower link as well", () => {
  const rate = fc.double({ min: 1e6, max: 1e12, noNaN: true });
  fc.assert(
    fc.property(rate, rate, rate, fc.double({ min: 0.5, max: 4, noNaN: true }), (link, encode, decode, ratio) => {
      const rates = { bytesPerSecondOfLink: link, encodeBytesPerSecond: encode, decodeBytesPerSecond: decode, ratio };
      const [plain, coded] = [1 / link, 1 / encode + 1 / decode + 1 / (ratio * link)];
      fc.pre(Math.abs(plain - coded) > 1e-9 * plain); // Equal up to rounding: both results are correct.
      expect(codecPays(rates)).toBe(coded < plain);
      if (codecPays(rates)) expect(codecPays({ ...rates, bytesPerSecondOfLink: link / 2 })).toBe(true);
    }),
  );
});
