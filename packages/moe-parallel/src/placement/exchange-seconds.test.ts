import { seeded } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { joinRoutings, numTokens, type Routing, singleChoices } from "../routing/routing.ts";
import { exchangeCases } from "./arbitrary-exchanges.ts";
import { groupsOfExperts, messageCounts } from "./exchange-counts.ts";
import { type ExchangeLevels, exchangesOf } from "./exchange-levels.ts";
import { exchangeSeconds } from "./exchange-seconds.ts";
import { placeInOrder } from "./expert-placement.ts";

const line = (startupSeconds: number, secondsPerByte: number) => ({ startupSeconds, secondsPerByte });
const sum = (values: Iterable<number>): number => [...values].reduce((a, b) => a + b, 0);

/** Published cost models, in seconds, for four hosts, each with two sockets of two pairs of GPUs. */
const published: ExchangeLevels = {
  numRanks: 32,
  flat: line(7.22e-4, 5.7e-10),
  levels: [
    { numGroups: 4, between: line(4.97e-4, 5.29e-10), within: line(5.71e-4, 1.27e-10) },
    { numGroups: 8, between: line(3.01e-4, 1.17e-10), within: line(1.14e-4, 2.63e-11) },
    { numGroups: 16, between: line(1.49e-4, 2.06e-11), within: line(2.04e-4, 1.64e-11) },
  ],
};

/** Returns a routing of the tokens of 32 ranks. Each token chooses 8 of 256 experts, all equally likely. */
const evenRouting = (tokensPerRank: number): Routing => {
  const random = seeded(1);
  const choices = Array.from({ length: 32 * tokensPerRank }, () => {
    const chosen = new Set<number>();
    while (chosen.size < 8) chosen.add(Math.floor(256 * random()));
    return [...chosen];
  });
  return { numExperts: 256, numChoices: 8, choices: Int32Array.from(choices.flat()) };
};

/**
 * Generates routings of up to 40 tokens to 24 experts (a number with many divisors). Some experts are chosen more
 * often.
 */
const routingsTo24: fc.Arbitrary<Routing> = fc
  .tuple(fc.integer({ min: 1, max: 8 }), fc.nat(40), fc.constantFrom(8, 12, 24))
  .chain(([numChoices, length, numPreferred]) =>
    fc
      .array(
        fc.uniqueArray(fc.oneof(fc.nat(numPreferred - 1), fc.nat(23)), {
          minLength: numChoices,
          maxLength: numChoices,
        }),
        { minLength: length, maxLength: length },
      )
      .map((tokens) => ({ numExperts: 24, numChoices, choices: Int32Array.from(tokens.flat()) })),
  );

/**
 * Simulates the exchange of the tokens of 24 ranks with equal routing, level by level, by the published rule: the
 * number of tokens that a rank sends between groups is the number of groups within its own group, times the maximum
 * number of tokens that any rank has for one of these groups.
 * @returns the number of tokens sent at each level and within the groups of the last level, and the number of tokens of
 * each rank at the end.
 */
const carried = (
  routing: Routing,
  numGroups: readonly number[],
): { readonly between: readonly number[]; readonly within: number; readonly tokensByRank: readonly number[] } => {
  const { choices, numChoices } = routing;
  const tokens = Array.from({ length: numTokens(routing) }, (_, token) => [
    ...choices.subarray(token * numChoices, (token + 1) * numChoices),
  ]);
  let tokensByRank = Array.from(
    { length: 24 },
    (_, rank) => new Set(tokens.map((_token, token) => `${rank} ${token}`)),
  );
  const step = (before: number, after: number): number => {
    const next = tokensByRank.map(() => new Set<string>());
    const size = 24 / after;
    let most = 0;
    for (const [rank, tokensOfRank] of tokensByRank.entries())
      for (let part = 0; part < after / before; part++) {
        const group = Math.floor(rank / (24 / before)) * (after / before) + part;
        const wanted = [...tokensOfRank].filter((name) =>
          tokens[Number(name.split(" ")[1])]!.some((expert) => Math.floor(expert / size) === group),
        );
        most = Math.max(most, wanted.length);
        for (const name of wanted) next[group * size + (rank % size)]!.add(name);
      }
    tokensByRank = next;
    return (after / before) * most;
  };
  const between = numGroups.map((count, i) => step(numGroups[i - 1] ?? 1, count));
  return { between, within: step(numGroups.at(-1)!, 24), tokensByRank: tokensByRank.map(({ size }) => size) };
};

describe("messageCounts", () => {
  test("saves the published shares of copies for 32, 16, 8 and 4 groups: 9, 18, 34 and 55 %", () => {
    const routing = evenRouting(64);
    const spared = [32, 16, 8, 4].map((numGroups) => {
      const groups = groupsOfExperts(placeInOrder(256, 32), numGroups);
      return (
        100 * (1 - sum(messageCounts(routing, groups, { numGroups, parentGroupSize: 1 }, 32)) / routing.choices.length)
      );
    });
    [9, 18, 34, 55].forEach((percent, i) => expect(Math.abs(spared[i]! - percent)).toBeLessThan(1));
  });

  test("a group receives each token at most once, and all groups at most min(K, groups) copies of each", () => {
    fc.assert(
      fc.property(exchangeCases, ({ routing, placement, levels }) => {
        const numTokens = routing.choices.length / routing.numChoices;
        for (const numGroups of [1, ...levels.levels.map((level) => level.numGroups), levels.numRanks]) {
          const groups = groupsOfExperts(placement, numGroups);
          const copies = messageCounts(routing, groups, { numGroups, parentGroupSize: 1 }, levels.numRanks);
          expect(Math.max(...copies)).toBeLessThanOrEqual(numTokens);
          expect(sum(copies)).toBeLessThanOrEqual(numTokens * Math.min(routing.numChoices, numGroups));
          let distinct = 0;
          for (let token = 0; token < numTokens; token++) {
            const chosen = routing.choices.slice(token * routing.numChoices, (token + 1) * routing.numChoices);
            distinct += new Set([...chosen].filter((expert) => expert !== -1).map((expert) => groups[expert])).size;
          }
          expect(sum(copies)).toBe(distinct);
        }
      }),
    );
  });

  test("messages by index add up to the messages of a group; coarser groups never need more copies", () => {
    fc.assert(
      fc.property(exchangeCases, ({ routing, placement, levels }) => {
        let before = -1;
        for (const exchange of exchangesOf(levels, levels.levels.length + 1)) {
          const { numGroups, parentGroupSize } = exchange;
          const groups = groupsOfExperts(placement, numGroups);
          const whole = messageCounts(routing, groups, { numGroups, parentGroupSize: 1 }, levels.numRanks);
          const parts = messageCounts(routing, groups, exchange, levels.numRanks);
          for (const [group, count] of whole.entries())
            expect(sum(parts.subarray(group * parentGroupSize, (group + 1) * parentGroupSize))).toBe(count);
          expect(sum(whole)).toBeGreaterThanOrEqual(before);
          before = sum(whole);
        }
      }),
    );
  });
});

describe("exchangeSeconds", () => {
  test("adds the terms of the formulas, counted by hand", () => {
    // Ranks 0, 1 of host 0 and 2, 3 of host 1; expert e on rank e; two choices, one token for each rank.
    const routing = { numExperts: 4, numChoices: 2, choices: Int32Array.of(2, 3, 2, 3, 3, -1, 0, 3) };
    const levels = {
      numRanks: 4,
      flat: line(1, 10),
      levels: [{ numGroups: 2, between: line(2, 100), within: line(4, 1000) }],
    };
    // Flat: each rank sends four messages of at most one token. Two levels: between hosts, ranks with index 0 send at
    // most one token. Then rank 2 sends two tokens to expert 3, and rank 3 keeps two tokens for expert 3.
    expect(exchangeSeconds(routing, placeInOrder(4, 4), levels, { bytesPerToken: 0.5 })).toEqual([
      1 + 10 * 4 * 1 * 0.5,
      2 + 100 * 2 * 1 * 0.5 + 4 + 1000 * 2 * 2 * 0.5,
    ]);
  });

  test("has the bytes of the published steps, counted over the tokens present at each level", () => {
    const [free, bytes] = [line(0, 0), line(0, 1)];
    fc.assert(
      fc.property(
        routingsTo24,
        fc.constantFrom([2], [2, 4, 12], [3, 6, 12], [4, 8], [2, 6, 24], [4, 24]),
        fc.boolean(),
        (own, cuts, hasEqualSenders) => {
          const routing = joinRoutings(Array.from({ length: 24 }, () => own));
          const placement = placeInOrder(24, 24);
          const steps = carried(own, cuts);
          const levels = cuts.map((numGroups) => ({ numGroups, between: free, within: free }));
          const bytesOf = (level: number, part: "between" | "within"): number =>
            exchangeSeconds(
              routing,
              placement,
              { numRanks: 24, flat: free, levels: levels.with(level, { ...levels[level]!, [part]: bytes }) },
              { bytesPerToken: 1, hasEqualSenders },
            )[cuts.length]!;
          expect(cuts.map((_, level) => bytesOf(level, "between"))).toEqual(
            steps.between.map((count) => expect.closeTo(count, 9)),
          );
          expect(bytesOf(cuts.length - 1, "within")).toBeCloseTo(steps.within, 9);
          // After each step, a rank has the tokens of its experts, each token once.
          const ranks = groupsOfExperts(placement, 24);
          const counts = messageCounts(routing, ranks, { numGroups: 24, parentGroupSize: 1 }, 24);
          expect(steps.tokensByRank).toEqual([...counts]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("equal senders: a group receives equal parts from all senders, so the maximum is over groups", () => {
    // By hand: both tokens of rank 0 chose both experts of rank 0, and each token of rank 1 chose one expert of rank 1.
    // Rank 0 receives two tokens or four choices: half from each rank with equal senders, all from rank 0 otherwise.
    const routing = { numExperts: 4, numChoices: 2, choices: Int32Array.of(0, 1, 1, 0, 2, -1, 3, -1) };
    const seconds = (sent: Routing, hasEqualSenders: boolean): readonly number[] =>
      exchangeSeconds(
        sent,
        placeInOrder(4, 2),
        { numRanks: 2, flat: line(3, 1), levels: [] },
        { bytesPerToken: 10, hasEqualSenders },
      );
    expect(seconds(routing, true)).toEqual([3 + 2 * (2 / 2) * 10]);
    expect(seconds(routing, false)).toEqual([3 + 2 * 2 * 10]);
    expect(seconds(singleChoices(routing), true)).toEqual([3 + 2 * (4 / 2) * 10]);
    expect(seconds(singleChoices(routing), false)).toEqual([3 + 2 * 4 * 10]);
  });

  test("an exchange that sends each token once to a group is never slower than one that sends each choice", () => {
    fc.assert(
      fc.property(exchangeCases, fc.boolean(), ({ routing, placement, levels }, hasEqualSenders) => {
        const options = { bytesPerToken: 1, hasEqualSenders };
        // A choice is a token, so that the tokens of a rank stay tokens of that rank.
        const each = exchangeSeconds(singleChoices(routing), placement, levels, options);
        exchangeSeconds(routing, placement, levels, options).forEach((seconds, i) =>
          expect(seconds).toBeLessThanOrEqual(each[i]! + 1e-9),
        );
      }),
    );
  });

  test("without tokens only startup times remain, also if a group is one rank", () => {
    const routing = { numExperts: 2, numChoices: 1, choices: new Int32Array() };
    const levels = {
      numRanks: 2,
      flat: line(1, 1),
      levels: [{ numGroups: 2, between: line(2, 1), within: line(4, 1) }],
    };
    expect(exchangeSeconds(routing, placeInOrder(2, 2), levels, { bytesPerToken: 8 })).toEqual([1, 6]);
  });

  test("a slower flat exchange never becomes the fastest; the coarsest level does not change the order of those that use it", () => {
    fc.assert(
      fc.property(
        exchangeCases,
        fc.double({ min: 1, max: 100, noNaN: true }),
        ({ routing, placement, levels }, times) => {
          const secondsOf = (changed: ExchangeLevels) =>
            exchangeSeconds(routing, placement, changed, { bytesPerToken: 4 });
          const before = secondsOf(levels);
          const slow = ({ startupSeconds, secondsPerByte }: ReturnType<typeof line>) =>
            line(startupSeconds, times * secondsPerByte);
          const flatter = secondsOf({ ...levels, flat: slow(levels.flat) });
          expect(flatter.slice(1)).toEqual(before.slice(1));
          expect(flatter[0]).toBeGreaterThanOrEqual(before[0]!);
          const [first, ...finer] = levels.levels;
          if (first === undefined) return;
          const slower = secondsOf({ ...levels, levels: [{ ...first, between: slow(first.between) }, ...finer] });
          expect(slower[0]).toBe(before[0]);
          const more = slower[1]! - before[1]!;
          slower.slice(1).forEach((seconds, i) => expect(seconds - before[i + 1]!).toBeCloseTo(more, 9));
        },
      ),
    );
  });

  test("with published fits and even routing, levels are faster than one exchange, and the plain maximum is smallest", () => {
    const routing = evenRouting(64);
    const placement = placeInOrder(256, 32);
    const plain = exchangeSeconds(routing, placement, published, { bytesPerToken: 2 * 7168 });
    const smooth = exchangeSeconds(routing, placement, published, { bytesPerToken: 2 * 7168, gamma: 10 });
    expect(plain.indexOf(Math.min(...plain))).toBeGreaterThan(0);
    smooth.forEach((seconds, i) => expect(seconds).toBeGreaterThanOrEqual(plain[i]!));
  });

  test("rejects inputs that do not match", () => {
    const routing = { numExperts: 4, numChoices: 1, choices: Int32Array.of(0, 1, 2, 3) };
    const levels = {
      numRanks: 2,
      flat: line(0, 1),
      levels: [{ numGroups: 2, between: line(0, 1), within: line(0, 1) }],
    };
    const placement = placeInOrder(4, 2);
    const options = { bytesPerToken: 4 };
    const replicas = { ...placement, expertOfSlot: [0, 1, 2, 3, 0, 1] };
    expect(() => exchangeSeconds(routing, replicas, levels, options)).toThrow(/6 slots for 4 experts/);
    expect(() => exchangeSeconds(routing, placeInOrder(8, 2), levels, options)).toThrow(/choose from 4 experts, but 8/);
    expect(() => exchangeSeconds(routing, placeInOrder(4, 4), levels, options)).toThrow(/levels of 2 ranks, .* on 4/);
    expect(() => exchangeSeconds({ ...routing, choices: Int32Array.of(0, 1, 2) }, placement, levels, options)).toThrow(
      /3 tokens are not divisible by 2 ranks/,
    );
    expect(() => exchangeSeconds(routing, placement, levels, { bytesPerToken: 0 })).toThrow(/bytesPerToken is 0/);
    expect(() => exchangeSeconds(routing, placement, levels, { ...options, gamma: 0.5 })).toThrow(/gamma is 0\.5/);
    const three = { ...levels, levels: [{ ...levels.levels[0]!, numGroups: 3 }] };
    expect(() => exchangeSeconds(routing, placement, three, options)).toThrow(/level 1 has 3 groups, .* 2 ranks/);
    const negative = { ...levels, flat: line(-1, 0) };
    expect(() => exchangeSeconds(routing, placement, negative, options)).toThrow(/a cost of -1 s/);
  });
});
