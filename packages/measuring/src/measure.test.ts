import { describe, expect, test } from "vitest";
import { measure } from "./measure.ts";

/** Returns a clock that advances only by calls: call number i takes `duration(i)` ms. */
const clocked = (
  duration: (i: number) => number,
): { readonly call: () => void; readonly clock: () => number; readonly calls: () => number } => {
  let now = 0;
  let calls = 0;
  return { call: () => void (now += duration(calls++)), clock: () => now, calls: () => calls };
};

describe("measure", () => {
  test("excludes the warm-up, and a single outlier moves neither median nor spread", async () => {
    // Five calls are warm-up; each of the remaining five is one sample: 20, 24, 20, 24, 9000.
    const { call, clock, calls } = clocked((i) => (i < 5 ? 500 : i === 9 ? 9000 : i % 2 === 1 ? 20 : 24));
    expect(await measure(call, { samples: 5, clock })).toEqual({ median: 24, mad: 4, n: 5, best: 20 });
    expect(calls()).toBe(10);
  });

  test("fills a sample with as many calls as fit its length, and reports the time of one call", async () => {
    const { call, clock, calls } = clocked(() => 2);
    expect(await measure(call, { samples: 3, sampleMilliseconds: 10, clock })).toEqual({
      median: 2,
      mad: 0,
      n: 3,
      best: 2,
    });
    expect(calls()).toBe(2 + 2 + 5 + 3 * 5);
  });

  test("awaits a call before it begins the next", async () => {
    let running = 0;
    let most = 0;
    const call = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running--;
    };
    await measure(call, { samples: 2, sampleMilliseconds: 0 });
    expect(most).toBe(1);
  });

  test("ends even if the clock does not advance", async () => {
    expect((await measure(() => undefined, { samples: 1, clock: () => 0 })).median).toBe(0);
  });
});
