import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sourceOf, type Unproven, UnprovenConnections } from "./unproven-connections.ts";

/** Returns functions to open connections, and the names of evicted connections. */
const open = (slots: number, quota: number, random: () => number = () => 0) => {
  const pool = new UnprovenConnections({ slots, quota, random });
  const evicted: string[] = [];
  const held = new Map<string, Unproven>();
  const enter = (name: string, source = "a"): Unproven => {
    const slot = pool.enter(source, () => evicted.push(name));
    held.set(name, slot);
    return slot;
  };
  return { pool, evicted, held, enter };
};

describe("slots for unauthenticated connections", () => {
  test("go to new connections; the oldest silent connection is evicted", () => {
    const { enter, evicted } = open(3, 9);
    enter("first").spoke();
    const second = enter("second");
    enter("third");
    enter("fourth");
    expect(evicted).toEqual(["second"]);
    expect(second.evicted).toBe(true);
    enter("fifth");
    enter("sixth");
    enter("seventh");
    expect(evicted).toEqual(["second", "third", "fourth", "fifth"]);
  });

  test("are taken from a random connection if none is silent", () => {
    for (const [chance, victim] of [
      [0, "0"],
      [0.5, "2"],
      [0.99, "3"],
    ] as const) {
      const { enter, evicted } = open(4, 9, () => chance);
      for (let i = 0; i < 4; i++) enter(`${i}`).spoke();
      enter("new");
      expect(evicted).toEqual([victim]);
    }
  });

  test("admit a rank that retries during a flood of valid messages, five times as dense as there are slots", () => {
    // If the oldest connection were evicted first, no attempt would succeed. With random eviction, (7/8)^40 of the
    // attempts succeed, one of 209. The probability that all 4,000 attempts fail is 5 in 10^9.
    let state = 1;
    const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647; // Lehmer's generator.
    const { enter } = open(8, 99, random);
    let stayed = 0;
    for (let attempt = 0; attempt < 4000; attempt++) {
      const rank = enter("rank");
      rank.spoke();
      for (let i = 0; i < 40; i++) enter("flood").spoke();
      if (!rank.evicted) stayed++;
      rank.leave();
    }
    expect(stayed).toBeGreaterThan(0);
  });

  test("are first taken from a source that exceeds its quota, even if its connections have spoken", () => {
    const { enter, evicted } = open(4, 2);
    enter("b1", "b"); // Older and silent, but source b is within its quota.
    for (let i = 1; i <= 3; i++) enter(`a${i}`).spoke();
    enter("c1", "c");
    expect(evicted).toEqual(["a1"]);
    enter("c2", "c"); // Now no source exceeds its quota.
    expect(evicted).toEqual(["a1", "b1"]);
  });

  test("are freed once when a connection is authenticated or closed", () => {
    const { enter, evicted, pool, held } = open(2, 2);
    enter("first");
    enter("second");
    held.get("first")!.leave();
    held.get("first")!.leave();
    enter("third");
    expect([evicted, pool.size]).toEqual([[], 2]);
  });

  test("never exceed their number; a new connection always gets one, and no connection is evicted twice", () => {
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ kind: fc.constant("enter" as const), source: fc.constantFrom("a", "b", "c", "d") }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constantFrom("leave" as const, "spoke" as const), which: fc.nat() }),
      },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(step, { maxLength: 60 }),
        (slots, quota, steps) => {
          const { enter, evicted, pool, held } = open(slots, quota);
          const left = new Set<string>();
          let count = 0;
          for (const each of steps) {
            if (each.kind === "enter") {
              const name = `${count++} ${each.source}`;
              const before = new Map(
                [...held.keys()]
                  .filter((other) => !left.has(other) && !evicted.includes(other))
                  .map((other) => [other, true]),
              );
              enter(name, each.source);
              expect(evicted).not.toContain(name);
              const victim = evicted.find((other) => before.has(other));
              expect(victim !== undefined).toBe(before.size === slots);
              if (victim !== undefined) {
                // No connection of a source within its quota is evicted while another source exceeds its quota.
                const of = (source: string): number =>
                  [...before.keys()].filter((other) => other.endsWith(source)).length;
                const most = Math.max(...["a", "b", "c", "d"].map(of));
                if (most > quota) expect(of(victim.at(-1)!)).toBe(most);
              }
            } else if (held.size > 0) {
              const name = [...held.keys()][each.which % held.size]!;
              if (each.kind === "spoke") held.get(name)!.spoke();
              else {
                held.get(name)!.leave();
                if (!evicted.includes(name)) left.add(name);
              }
            }
            expect(pool.size).toBe(held.size - left.size - evicted.length);
            expect(pool.size).toBeLessThanOrEqual(slots);
          }
          expect(new Set(evicted).size).toBe(evicted.length);
        },
      ),
    );
  });
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"],
  ["2001:0db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  [undefined, "gone"],
])("%s counts for %s", (address, source) => expect(sourceOf(address)).toBe(source));
