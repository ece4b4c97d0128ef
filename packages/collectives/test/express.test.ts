import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Call, laneCount, operandOf, type Program, regionCount } from "./express-rank.ts";
import { withWorld } from "./express-world.ts";

/**
 * Returns the expected contents of each region of each rank after a program, if each lane runs in order and every sum
 * is in rank order.
 */
const interpret = (worldSize: number, groups: readonly (readonly number[])[][], { seed, calls }: Program) => {
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  const state = ranks.map((rank) =>
    Array.from({ length: laneCount }, (_, lane) =>
      Array.from({ length: regionCount }, (__, region) => operandOf(seed, rank, lane, region)),
    ),
  );
  for (const { kind, reduction, group, root, lane, from, to, n } of calls) {
    if (kind === "barrier") continue;
    for (const members of groups[group]!) {
      const operands = members.map((rank) => state[rank]![lane]![from]!.slice(0, n));
      const sum = operands.reduce((a, b) =>
        a.map((value, i) => (reduction === "sum" ? Math.fround(value + b[i]!) : Math.max(value, b[i]!))),
      );
      for (const rank of members) {
        const target = state[rank]![lane]![to]!;
        if (kind === "all-reduce") target.set(sum);
        else if (kind === "reduce") target.set(rank === members[root % members.length] ? sum : sum.map(() => 0));
        else for (const [i, operand] of operands.entries()) target.set(operand, i * n);
      }
    }
  }
  return state;
};

const callIn = (worldSize: number, groupCount: number): fc.Arbitrary<Call> =>
  fc
    .record({
      kind: fc.constantFrom<Call["kind"]>("all-reduce", "reduce", "reduce", "all-gather", "barrier"),
      reduction: fc.constantFrom<Call["reduction"]>("sum", "max"),
      group: fc.nat({ max: groupCount - 1 }),
      root: fc.nat({ max: worldSize - 1 }),
      lane: fc.constantFrom(0, 0, 1, 3),
      from: fc.nat({ max: regionCount - 1 }),
      to: fc.nat({ max: regionCount - 1 }),
      n: fc.constantFrom(1, 7, 1000, 16_383, 16_384, 16_385, 20_000),
      pauses: fc.array(fc.constantFrom(0, 0, 0, 1, 4), { minLength: worldSize, maxLength: worldSize }),
      waits: fc.array(fc.boolean(), { minLength: worldSize, maxLength: worldSize }),
    })
    // An all-gather cannot be in place.
    .map((call) => (call.kind === "all-gather" && call.from === call.to ? { ...call, kind: "all-reduce" } : call));

const whole = (worldSize: number): number[] => Array.from({ length: worldSize }, (_, rank) => rank);
const once = { reduction: "sum", group: 0, root: 0, lane: 0, from: 0, to: 1 } as const;
const always = { pauses: [0, 0, 0], waits: [true, true, true] } as const;

describe.each([
  { worldSize: 2, partitions: [] },
  {
    worldSize: 3,
    partitions: [
      [[0, 2], [1]],
      [[0], [1, 2]],
    ],
  },
])("$worldSize ranks of one machine connected by TCP", ({ worldSize, partitions }) => {
  test("law: small and large requests of all lanes and groups, some on the outputs of others, give the bits of sequential execution", async () => {
    const groups = [[whole(worldSize)], ...partitions];
    const program = fc.record({
      seed: fc.nat(1000),
      calls: fc.array(callIn(worldSize, groups.length), { minLength: 1, maxLength: 24 }),
    });
    const programs = fc.sample(program, 12);
    await withWorld(worldSize, {}, async ({ run }) => {
      const answers = await run(whole(worldSize).map(() => ({ partitions, programs })));
      expect(answers.map(({ error }) => error)).toEqual(answers.map(() => undefined));
      programs.forEach((one, i) => {
        const expected = interpret(worldSize, groups, one);
        answers.forEach(({ regions }, rank) => {
          const same = regions[i]!.every((lane, l) =>
            lane.every(
              (region, r) =>
                Buffer.compare(Buffer.from(region.buffer), Buffer.from(expected[rank]![l]![r]!.buffer)) === 0,
            ),
          );
          expect(same, `rank ${rank} of ${JSON.stringify(one)}`).toBe(true);
        });
      });
    });
  }, 60_000);
});

test("requests of at most 64 KiB in a group of at most 8 use the express path, whichever thread waits for them", async () => {
  const calls = [16_384, 16_385].map((n): Call => ({ ...once, ...always, kind: "all-reduce", n }));
  await withWorld(2, {}, async ({ run }) => {
    const answers = await run([0, 1].map(() => ({ partitions: [], programs: [{ seed: 1, calls }] })));
    for (const { algorithms } of answers) expect(algorithms.map((name) => name === "express")).toEqual([true, false]);
  });
});

test.each([{ codec: "always" }, { emulate: { latencySeconds: 1e-4 } }] as const)(
  "with %j, none does",
  async (settings) => {
    const calls: Call[] = [{ ...once, ...always, kind: "all-reduce", n: 5 }];
    await withWorld(2, settings, async ({ run, worlds }) => {
      expect(worlds.map((world, rank) => world.connection(rank).express)).toEqual([[], []]);
      const answers = await run([0, 1].map(() => ({ partitions: [], programs: [{ seed: 1, calls }] })));
      for (const { algorithms } of answers) expect(algorithms).not.toContain("express");
    });
  },
);

test("starts more requests than a queue holds, small before large, before waiting for any", async () => {
  const call = (n: number, lane: number): Call => ({
    ...once,
    kind: "all-reduce",
    lane,
    from: 0,
    to: 0,
    n,
    pauses: [0, 0],
    waits: [false, false],
  });
  // Small requests write the input of large requests, and vice versa.
  const calls = Array.from({ length: 150 }, (_, i) => call(i % 2 === 0 ? 3 : 16_400, 2));
  const program = { seed: 3, calls: [...calls, ...Array.from({ length: 70 }, () => call(10, 1))] };
  const scaled = { ...program, calls: program.calls.map((one) => ({ ...one, reduction: "max" as const })) };
  await withWorld(2, {}, async ({ run }) => {
    const answers = await run([0, 1].map(() => ({ partitions: [], programs: [scaled] })));
    expect(answers.map(({ error }) => error)).toEqual([undefined, undefined]);
    const expected = interpret(2, [[whole(2)]], scaled);
    answers.forEach(({ regions }, rank) => expect(regions[0]).toEqual(expected[rank]));
  });
});

describe("failures are detected by all ranks, in time, and name the rank", () => {
  const reduce = (n: number): Program => ({ seed: 1, calls: [{ ...once, ...always, kind: "all-reduce", n }] });

  test("a rank that reduces to a different root", async () => {
    const toRoot = (root: number): Program => ({
      seed: 1,
      calls: [{ ...once, ...always, kind: "reduce", n: 8, root }],
    });
    await withWorld(2, {}, async ({ run }) => {
      const answers = await run([0, 1].map((root) => ({ partitions: [], programs: [toRoot(root)] })));
      expect(answers.map(({ error }) => error?.code)).toEqual(["ranks-disagree", "ranks-disagree"]);
      // Both ranks detect the disagreement. Each rank reports its own error or, if that arrived first, the error of the
      // other rank.
      const accounts =
        /rank (1 sent|1 reports about rank 0: rank 0 sent) 0 bytes for reduce #1, 32 were expected for reduce #1/;
      expect(answers[0]!.error?.message).toMatch(accounts);
    });
  });

  test("ranks that only send are limited by the buffer space of a root that sleeps", async () => {
    const calls = Array.from({ length: 200 }, (_, i): Call => {
      const pauses = i === 0 ? [400, 0, 0] : [0, 0, 0];
      return { ...once, kind: "reduce", n: 50, pauses, waits: [true, true, true] };
    });
    await withWorld(3, {}, async ({ run }) => {
      const answers = await run([0, 1, 2].map(() => ({ partitions: [], programs: [{ seed: 1, calls }] })));
      expect(answers.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
      expect(answers[1]!.algorithms).toEqual(calls.map(() => "express"));
    });
  });

  test.each([
    ["a different small size", 8, 9],
    ["a large size", 8, 17_000],
  ])("a rank that asks for %s", async (_, small, other) => {
    await withWorld(2, {}, async ({ run }) => {
      const answers = await run([small, other].map((n) => ({ partitions: [], programs: [reduce(n)] })));
      expect(answers.map(({ error }) => error?.code)).toEqual(["ranks-disagree", "ranks-disagree"]);
      expect(answers.map(({ error }) => error?.peer)).toEqual([1, 0]);
      expect(answers[0]!.error?.message).toMatch(/all-reduce #1/);
    });
  });

  test("a rank that does not start the request", async () => {
    const late: Program = { seed: 1, calls: [{ ...reduce(8).calls[0]!, pauses: [0, 3000, 0] }] };
    await withWorld(3, { timeoutMilliseconds: 600 }, async ({ run }) => {
      const answers = await run([0, 1, 2].map(() => ({ partitions: [], programs: [late] })));
      for (const rank of [0, 2]) {
        expect(answers[rank]!.error?.code).toBe("collective-timeout");
        expect(answers[rank]!.error?.message).toMatch(/rank 1 .*all-reduce #1|all-reduce #1.*rank 1/);
      }
    });
  });

  test("a rank that has finished", async () => {
    await withWorld(2, {}, async ({ run }) => {
      const answers = await run(
        [[reduce(8)], []].map((programs) => ({ partitions: [], programs })),
        (rank) => rank === 1,
      );
      expect(answers[1]!.error).toBeUndefined();
      expect(answers[0]!.error?.code).toBe("peer-lost");
      expect(answers[0]!.error?.message).toMatch(/rank 1 was lost during all-reduce #1: it had finished and closed/);
    });
  });
});
