import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { requestHistograms, HistogramRequests, requestFile } from "./histogram-request.ts";

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), "skein-request-"))));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns ranks in lockstep that exchange texts. Each rank has its own clock. */
const ranksOf = (worldSize: number, clocks: readonly (() => number)[]) => {
  let [exchanges, said] = [0, Array<string>(worldSize).fill("")];
  let arrived = Promise.withResolvers<readonly string[]>();
  let count = 0;
  const ranks = clocks.map((clock, rank) => {
    const exchangeTexts = (text: string): Promise<readonly string[]> => {
      said[rank] = text;
      const { promise, resolve } = arrived;
      if (++count === worldSize) {
        exchanges++;
        resolve(said);
        [said, count, arrived] = [Array<string>(worldSize).fill(""), 0, Promise.withResolvers<readonly string[]>()];
      }
      return promise;
    };
    return new HistogramRequests(folder, rank, { worldSize, exchangeTexts }, clock);
  });
  return { ranks, exchanges: () => exchanges };
};

test("all ranks learn of a request before the same step, for any clocks and lengths of steps", () =>
  fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.double({ min: 1e-3, max: 5000, noNaN: true }), { minLength: 1, maxLength: 60 }),
      fc.nat(60),
      async (worldSize, milliseconds, askedBefore) => {
        let now = 0;
        const { ranks } = ranksOf(
          worldSize,
          Array.from({ length: worldSize }, (_, rank) => () => now * (1 + rank) - 100 * rank),
        );
        let answers = 0;
        for (const [step, length] of milliseconds.entries()) {
          if (step === askedBefore) requestHistograms(folder);
          const asked = await Promise.all(ranks.map((rank) => rank.isRequested()));
          expect(new Set(asked).size).toBe(1);
          if (asked[0]!) {
            answers++;
            expect(step).toBeGreaterThanOrEqual(askedBefore);
          }
          now += length;
        }
        const isOpen = existsSync(join(folder, requestFile));
        rmSync(join(folder, requestFile), { force: true });
        expect(answers + Number(isOpen)).toBe(askedBefore < milliseconds.length ? 1 : 0);
      },
    ),
  ));

test.each([
  ["steps of a millisecond", 1, 5],
  ["steps of five seconds", 5000, 5],
])("ranks check about once a second: %s", async (_, milliseconds, seconds) => {
  let now = 0;
  const { ranks, exchanges } = ranksOf(2, [() => now, () => now]);
  for (; now < 1000 * seconds; now += milliseconds) await Promise.all(ranks.map((rank) => rank.isRequested()));
  expect(exchanges()).toBeLessThanOrEqual(seconds + 2);
  requestHistograms(folder);
  let waited = 0;
  for (; !(await Promise.all(ranks.map((rank) => rank.isRequested())))[0]!; now += milliseconds) waited += milliseconds;
  expect(waited).toBeLessThanOrEqual(2000 + milliseconds);
});

test("follows no link, treats two requests as one, and throws if the folder is not writable", () => {
  const [elsewhere, asked] = [join(folder, "elsewhere"), join(folder, requestFile)];
  symlinkSync(elsewhere, asked);
  requestHistograms(folder);
  requestHistograms(folder);
  expect(readdirSync(folder)).toEqual([requestFile]);
  rmSync(asked);
  mkdirSync(join(folder, "full"));
  expect(() => requestHistograms(join(folder, "nowhere"))).toThrow(/ENOENT/);
});
