import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../test/network-clock.ts";
import { FailureDetector } from "./failure-detector.ts";
import { checkHeartbeat, defaultHeartbeat, type LinkHeartbeat, lookMilliseconds } from "./heartbeat.ts";

const { intervalMilliseconds, lossMilliseconds } = defaultHeartbeat;

/**
 * A watched peer, and a thread whose event loop is controlled by the test: each turn runs timers first, then processes
 * received bytes.
 */
class Watched {
  readonly clock = new VirtualClock();
  readonly pings: number[] = [];
  readonly suspicions: boolean[] = [];
  readonly detector: FailureDetector;
  lostAt: number | undefined;
  lostSilence = 0;
  sentAt = 0;
  #heardAt = 0;

  constructor(heartbeat: LinkHeartbeat) {
    this.detector = new FailureDetector(heartbeat, this.clock);
    this.detector.watch({
      heardAt: () => this.#heardAt,
      sentAt: () => this.sentAt,
      ping: () => this.pings.push(this.clock.now()),
      suspected: (isSuspected) => this.suspicions.push(isSuspected),
      lost: (silence) => {
        expect(this.lostAt, "reported once").toBeUndefined();
        this.lostAt = this.clock.now();
        this.lostSilence = silence;
      },
    });
  }

  heard(): void {
    this.#heardAt = this.clock.now();
  }

  run(milliseconds: number): void {
    this.clock.advance(milliseconds);
  }

  /** Pauses this thread. After the pause, due timers run before received bytes are processed. */
  pause(milliseconds: number): void {
    this.clock.advance(milliseconds, Infinity);
    this.clock.advance(0);
  }
}

describe("a peer", () => {
  test("that is silent gets a ping every interval, and is lost within one look of the loss time", () => {
    const watched = new Watched(defaultHeartbeat);
    watched.run(60_000);
    expect(watched.pings).toEqual(
      Array.from({ length: lossMilliseconds / intervalMilliseconds - 1 }, (_, i) => (i + 1) * intervalMilliseconds),
    );
    expect(watched.lostAt).toBe(lossMilliseconds);
  });

  test("that is heard at least once per loss time is never lost", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: lossMilliseconds - 1 }), { minLength: 1, maxLength: 20 }),
        (gaps) => {
          const watched = new Watched(defaultHeartbeat);
          for (const gap of gaps) {
            watched.run(gap);
            watched.heard();
          }
          expect(watched.lostAt).toBeUndefined();
        },
      ),
    );
  });

  test("gets no pings while other bytes are sent to it", () => {
    const watched = new Watched(defaultHeartbeat);
    for (let i = 0; i < 200; i++) {
      watched.run(100);
      watched.sentAt = watched.clock.now();
      watched.heard();
    }
    expect(watched.pings).toEqual([]);
  });

  test("is lost for silence after this thread was busy, not during that time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2 * intervalMilliseconds, max: 10 ** 7 }), (busy) => {
        const watched = new Watched(defaultHeartbeat);
        watched.pause(busy);
        expect(watched.lostAt).toBeUndefined();
        watched.run(2 * lossMilliseconds);
        const look = lookMilliseconds(defaultHeartbeat);
        expect(watched.lostAt! - busy).toBeLessThanOrEqual(lossMilliseconds + look);
        expect(watched.lostAt! - busy).toBeGreaterThanOrEqual(lossMilliseconds - intervalMilliseconds - look);
      }),
    );
  });

  test("that is no longer watched gets no pings and is not lost", () => {
    const clock = new VirtualClock();
    const fail = (): never => expect.unreachable();
    const detector = new FailureDetector(defaultHeartbeat, clock);
    const unwatch = detector.watch({ heardAt: () => 0, ping: fail, lost: fail });
    unwatch();
    clock.advance(60_000);
    detector.watch({ heardAt: () => 0, ping: fail, lost: fail });
    detector.close();
    clock.advance(60_000);
  });
});

// Any valid heartbeat, and any sequence of running and pausing.

const heartbeats: fc.Arbitrary<LinkHeartbeat> = fc
  .tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 120 }))
  .map(([interval, more]) => ({ intervalMilliseconds: interval, lossMilliseconds: 2 * interval + more }));
const stretches = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ run: fc.integer({ min: 1, max: 60 }) }) },
    {
      weight: 1,
      arbitrary: fc.record({ pause: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 40, max: 5000 })) }),
    },
  ),
  { minLength: 1, maxLength: 60 },
);

/**
 * Alternates between running and pausing for the given stretches. A sign of life at a time in `beats` is heard at that
 * time, or after the pause if this thread is paused.
 *
 * @returns the running time since the last sign of life.
 */
const live = (
  watched: Watched,
  all: readonly ({ readonly run: number } | { readonly pause: number })[],
  beats: () => number,
): number => {
  let next = beats();
  let alone = 0;
  for (const stretch of all) {
    const end = watched.clock.now() + ("run" in stretch ? stretch.run : stretch.pause);
    if ("run" in stretch)
      while (watched.clock.now() < end) {
        const until = Math.min(end, Math.max(next, watched.clock.now()));
        alone += until - watched.clock.now();
        watched.run(until - watched.clock.now());
        if (until < next) break;
        watched.heard();
        alone = 0;
        next += beats();
      }
    else {
      watched.pause(stretch.pause);
      const came = next <= end;
      while (next <= end) next += beats();
      if (came) {
        watched.heard();
        alone = 0;
      }
    }
  }
  return alone;
};

describe("for any sequence of running and pausing,", () => {
  test("a peer that is heard in time is never lost, for any times of its signs of life", () => {
    fc.assert(
      fc.property(
        heartbeats,
        stretches,
        fc.array(fc.double({ min: 0.05, max: 1, noNaN: true }), { minLength: 1 }),
        (heartbeat, all, shares) => {
          const watched = new Watched(heartbeat);
          const longest = heartbeat.lossMilliseconds - heartbeat.intervalMilliseconds;
          let i = 0;
          live(watched, all, () => shares[i++ % shares.length]! * longest);
          expect(watched.lostAt).toBeUndefined();
        },
      ),
      { numRuns: 500 },
    );
  });

  test("a silent peer is lost after the loss time, and before this thread has run for the loss time and two intervals", () => {
    fc.assert(
      fc.property(heartbeats, stretches, (heartbeat, all) => {
        const watched = new Watched(heartbeat);
        const alone = live(watched, all, () => Infinity);
        const bound = heartbeat.lossMilliseconds + 2 * heartbeat.intervalMilliseconds;
        if (alone >= bound) expect(watched.lostAt).toBeDefined();
        if (watched.lostAt === undefined) return;
        expect(watched.lostAt).toBeGreaterThanOrEqual(heartbeat.lossMilliseconds);
        // Sums of intervals of a third of a millisecond only approximate the loss time, so the bound may be reached.
        expect(watched.lostSilence).toBeLessThanOrEqual(bound + 1e-6);
        expect(watched.suspicions, "suspected before").toEqual([true]);
      }),
      { numRuns: 500 },
    );
  });

  test("signs of life during a pause count, after any silence before", () => {
    fc.assert(
      fc.property(
        heartbeats,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.integer({ min: 1, max: 5000 }),
        (heartbeat, share, more) => {
          const watched = new Watched(heartbeat);
          watched.run(share * heartbeat.lossMilliseconds);
          // Longer than one interval since the previous check, so the detector knows that it has not listened.
          watched.pause(2 * heartbeat.intervalMilliseconds + more);
          watched.heard();
          watched.run(heartbeat.lossMilliseconds / 2);
          expect(watched.lostAt).toBeUndefined();
        },
      ),
    );
  });

  test("a silent peer is lost even if every look is late", () => {
    fc.assert(
      fc.property(heartbeats, fc.integer({ min: 1, max: 100 }), (heartbeat, more) => {
        const watched = new Watched(heartbeat);
        const looks = Math.ceil(heartbeat.lossMilliseconds / heartbeat.intervalMilliseconds) + 1;
        for (let i = 0; i < looks; i++)
          watched.pause(heartbeat.intervalMilliseconds + lookMilliseconds(heartbeat) + more);
        expect(watched.lostAt).toBeDefined();
      }),
    );
  });

  test("suspicion alternates between true and false", () => {
    fc.assert(
      fc.property(
        heartbeats,
        stretches,
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }),
        (heartbeat, all, gaps) => {
          const watched = new Watched(heartbeat);
          let i = 0;
          live(watched, all, () => gaps[i++ % gaps.length]!);
          expect(watched.suspicions).toEqual(watched.suspicions.map((_, turn) => turn % 2 === 0));
          if (watched.lostAt !== undefined) expect(watched.suspicions.at(-1)).toBe(true);
        },
      ),
    );
  });
});

test("rejects a heartbeat that one late ping would break", () => {
  expect(() => checkHeartbeat({ ...defaultHeartbeat, lossMilliseconds: 1500 })).toThrow(/at least two intervals/);
  expect(() => checkHeartbeat({ ...defaultHeartbeat, intervalMilliseconds: 0 })).toThrow(/every 0 ms/);
  expect(() => checkHeartbeat({ ...defaultHeartbeat, stuckMilliseconds: 0 })).toThrow(
    /cannot count as stuck after 0 ms/,
  );
  checkHeartbeat(defaultHeartbeat);
});
