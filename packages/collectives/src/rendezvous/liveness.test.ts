import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkHeartbeat, defaultHeartbeat, Liveness } from "./liveness.ts";

const { intervalMilliseconds, lossMilliseconds } = defaultHeartbeat;

/** Look every tick from `from` to `to`. Returns when what came out. */
const looks = (
  liveness: Liveness,
  from: number,
  to: number,
  each: (now: number) => void = () => {},
): { pings: number[]; lost: number | undefined } => {
  const pings: number[] = [];
  for (let now = from + liveness.lookMilliseconds; now <= to; now += liveness.lookMilliseconds) {
    each(now);
    const what = liveness.look(now);
    if (what === "lost") return { pings, lost: now };
    if (what === "ping") {
      pings.push(now);
      liveness.sent(now);
    }
  }
  return { pings, lost: undefined };
};

describe("a peer", () => {
  test("that is silent is pinged every interval, and lost within a look of the loss time", () => {
    const { pings, lost } = looks(new Liveness(defaultHeartbeat, 0), 0, 60_000);
    expect(pings).toEqual(Array.from({ length: lossMilliseconds / intervalMilliseconds - 1 }, (_, i) => (i + 1) * intervalMilliseconds));
    expect(lost).toBe(lossMilliseconds);
  });

  test("that is heard once in less than the loss time is never lost", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: lossMilliseconds - 1 }), { minLength: 1, maxLength: 20 }), (gaps) => {
        const liveness = new Liveness(defaultHeartbeat, 0);
        let sum = 0;
        const times = gaps.map((gap) => (sum += gap));
        const { lost } = looks(liveness, 0, times.at(-1)!, (now) => {
          for (const time of times) if (time <= now && time > now - liveness.lookMilliseconds) liveness.heard(time);
        });
        expect(lost).toBeUndefined();
      }),
    );
  });

  test("to which much was said is not pinged", () => {
    const liveness = new Liveness(defaultHeartbeat, 0);
    const { pings } = looks(liveness, 0, 20_000, (now) => {
      liveness.sent(now);
      liveness.heard(now);
    });
    expect(pings).toEqual([]);
  });

  test("is not blamed for the time in which this thread was busy, but for the silence after it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2 * intervalMilliseconds, max: 10 ** 7 }), (busy) => {
        const liveness = new Liveness(defaultHeartbeat, 0);
        expect(liveness.look(busy)).not.toBe("lost");
        const { lost } = looks(liveness, busy, busy + 2 * lossMilliseconds);
        expect(lost! - busy).toBeLessThanOrEqual(lossMilliseconds);
        expect(lost! - busy).toBeGreaterThanOrEqual(lossMilliseconds - intervalMilliseconds - liveness.lookMilliseconds);
      }),
    );
  });
});

test("a heartbeat that one late ping would break is refused", () => {
  expect(() => checkHeartbeat({ ...defaultHeartbeat, lossMilliseconds: 1500 })).toThrow(/at least two intervals/);
  expect(() => checkHeartbeat({ ...defaultHeartbeat, intervalMilliseconds: 0 })).toThrow(/every 0 ms/);
  expect(() => checkHeartbeat({ ...defaultHeartbeat, stuckMilliseconds: 0 })).toThrow(/cannot count as stuck after 0 ms/);
  checkHeartbeat(defaultHeartbeat);
});
