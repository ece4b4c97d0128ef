import { bytesPerElement } from "@skein/tensor-core";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Act, type Choose, interleavedWorld } from "./interleaved-world.ts";
import { closedForm, fromBytes, operand, parametersOf, regionElements, toBytes } from "./world.ts";

interface RequestCase {
  readonly kind: CollectiveKind;
  readonly n: number;
  readonly priority: number;
  /** Whether every rank waits for the request immediately. If false, each rank waits at a random time. */
  readonly awaited: boolean;
  /** Whether the request runs in a group with only every second rank, instead of in the world. */
  readonly half: boolean;
}

const width = bytesPerElement.f32;
const rankBytes = 65_536;

/**
 * Returns the actions of one rank. Requests of one priority start in order, requests of different priorities in random
 * order. The rank may wait for any request after it has started all earlier requests, so no rank waits for a request
 * that another rank starts only after the same wait.
 */
const actsOf = (cases: readonly RequestCase[], begins: readonly Act[], roll: (sides: number) => number): Act[] => {
  const acts: Act[] = [];
  const started: number[] = [];
  const waited = new Set<number>();
  const has = (i: number): boolean => started.includes(i);
  while (waited.size < cases.length) {
    const next = cases.flatMap(({ priority, awaited }, i) => {
      const free = !has(i) && cases.every((other, j) => j >= i || has(j) || (other.priority !== priority && !awaited));
      return free ? [i] : [];
    });
    const due = started.filter((i) => !waited.has(i) && cases.every((_, j) => j >= i || has(j)));
    const at = roll(next.length + due.length);
    const chosen = [...next, ...due][at]!;
    if (at < next.length) {
      acts.push(begins[chosen]!);
      started.push(chosen);
    }
    if (at >= next.length || cases[chosen]!.awaited) {
      acts.push({ wait: started.indexOf(chosen) });
      waited.add(chosen);
    }
  }
  return acts;
};

/**
 * Makes every rank of a world start the same requests, each rank in its own order as far as allowed. For any
 * scheduling, every result must equal the closed form.
 */
const check = (
  worldSize: number,
  cases: readonly RequestCase[],
  choose: Choose,
  order: (begins: readonly Act[], rank: number) => Act[],
): void => {
  const world = interleavedWorld(worldSize, worldSize * rankBytes);
  const halves = [0, 1].map((half) =>
    Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => rank % 2 === half),
  );
  if (worldSize > 1) for (const members of halves) world.group(1, members);
  const results: (() => void)[] = [];
  const acts = Array.from({ length: worldSize }, (_, rank) => {
    let next = rank * rankBytes;
    const take = (elements: number): Uint8Array => {
      const bytes = new Uint8Array(world.memory.buffer, next, elements * width);
      next += Math.ceil((elements * width) / 16) * 16;
      return bytes;
    };
    const begins = cases.map(({ kind, n, priority, awaited, half }, i): Act => {
      const members =
        half && worldSize > 1 ? halves[rank % 2]! : Array.from({ length: worldSize }, (_, other) => other);
      const [own, count] = [members.indexOf(rank), members.length];
      const sizes = regionElements(kind, count, n);
      const [input, output] = [take(sizes.input), take(sizes.output)];
      input.set(toBytes(operand(rank + i, sizes.input, "f32"), "f32"));
      const { to, from } = parametersOf(own, count, n);
      results.push(() => {
        const inputs = members.map((member) => operand(member + i, sizes.input, "f32"));
        expect(fromBytes(output, "f32"), `${kind} ${i} on rank ${rank}`).toEqual(
          closedForm(kind, parametersOf(own, count, n), inputs),
        );
      });
      return {
        start: {
          kind,
          dtype: "f32",
          input,
          output,
          root: 0,
          priority,
          awaited,
          ...(kind === "send-receive" && { to: to!, from: from! }),
        },
        ...(half && worldSize > 1 && { group: 1 }),
      };
    });
    return order(begins, rank);
  });
  world.run(acts, choose);
  for (const result of results) result();
};

const cases = fc.array(
  fc.record({
    kind: fc.constantFrom<CollectiveKind>(
      "all-reduce",
      "reduce-scatter",
      "all-gather",
      "all-to-all",
      "broadcast",
      "reduce",
      "send-receive",
      "barrier",
    ),
    n: fc.constantFrom(0, 1, 5, 17),
    priority: fc.constantFrom(0, 0, 1, 3),
    awaited: fc.boolean(),
    half: fc.boolean(),
  }),
  { minLength: 1, maxLength: 6 },
);

/** Returns a generator of small random integers, equal for equal seeds. */
const dice = (seed: number): ((sides: number) => number) => {
  let state = seed | 0;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return (state >>> 8) % sides;
  };
};

describe("threads that share lanes and a control block", () => {
  test.each([
    [1, 20],
    [2, 200],
    [3, 80],
    [5, 20],
    [16, 4],
  ])("law: %i ranks end with the closed form in whatever order they run (%i schedules)", (worldSize, numRuns) => {
    fc.assert(
      fc.property(cases, fc.integer(), fc.constantFrom(1, 3, 40), (requests, seed, stay) => {
        const roll = dice(seed);
        // Threads that run for long stretches, as real threads do, and threads that switch at every step.
        const choose: Choose = (count, last) => (last >= 0 && roll(stay) !== 0 ? last : roll(count));
        const own = dice(~seed);
        check(worldSize, requests, choose, (begins) => actsOf(requests, begins, own));
      }),
      { numRuns },
    );
  });

  test("two ranks finish in all schedules with one preemption, and no notification is missing", () => {
    const one = { n: 3, half: false, awaited: false } as const;
    // Actions of each of two ranks: start (s) a request, or wait for (w) a request, by index.
    const scripts: { readonly requests: readonly RequestCase[]; readonly acts: readonly [string, string] }[] = [
      { requests: [{ ...one, kind: "all-reduce", priority: 0, awaited: true }], acts: ["s0 w0", "s0 w0"] },
      {
        // The second request, in flight on rank 0, completes only after the first, which rank 0 posts later.
        requests: [
          { ...one, kind: "broadcast", priority: 0 }, // rank 1 sends no message, so that no other event wakes rank 0
          { ...one, kind: "all-gather", priority: 2 },
        ],
        acts: ["s1 s0 w1 w0", "s0 w0 s1 w1"],
      },
      {
        // A thread that has executed the first request of a lane leaves the second request to its companion, and
        // executes requests of another lane.
        requests: [
          { ...one, kind: "barrier", priority: 1 },
          { ...one, kind: "barrier", priority: 1 },
          { ...one, kind: "barrier", priority: 0, awaited: true },
        ],
        acts: ["s0 s1 w0 s2 w2 w1", "s0 s1 w1 w0 s2 w2"],
      },
    ];
    let schedules = 0;
    for (const { requests, acts } of scripts) {
      const order = (begins: readonly Act[], rank: number): Act[] => {
        const started: number[] = [];
        return acts[rank]!.split(" ").map(([act, number]) => {
          const i = Number(number);
          return act === "s" ? begins[started.push(i) && i]! : { wait: started.indexOf(i) };
        });
      };
      // Runs without preemption except when a thread sleeps; at one step, another thread is scheduled.
      for (let at = 0, reached = true; reached; at++) {
        reached = false;
        for (let other = 0; other < 3; other++) {
          let step = 0;
          const choose: Choose = (count, last) => {
            const interrupted = step++ === at;
            if (!interrupted || count <= other + 1) return Math.max(last, 0);
            schedules++;
            return (Math.max(last, 0) + 1 + other) % count;
          };
          check(2, requests, choose, order);
          reached ||= step > at;
        }
      }
    }
    expect(schedules).toBeGreaterThan(100);
  });
});
