import { type Algorithm, ethernetLinks, type LinkCosts, predictedSeconds } from "@skein/collectives";
import {
  algorithms,
  binomialBroadcast,
  binomialReduce,
  bruckAllGather,
  chainBroadcast,
  chainReduce,
  directAllGather,
  directAllReduce,
  directReduce,
  directReduceScatter,
  gatherReduce,
  halvingDoublingAllReduce,
  halvingReduce,
  pairwiseAllToAll,
  parameterServerAllReduce,
  recursiveDoublingAllGather,
  recursiveDoublingAllReduce,
  recursiveHalvingReduceScatter,
  reduceScatterGatherReduce,
  ringAllGather,
  ringAllReduce,
  ringReduceScatter,
  directSendReceive,
  torusAllReduce,
  twoLevelAllReduce,
} from "@skein/collectives/algorithms";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Fraction, fraction, fractions } from "../../test/fractions.ts";
import { type MessageCosts, simulateSchedule, simulateScheduleIn } from "./simulate-schedule.ts";

interface Figures {
  readonly α: number;
  readonly β: number;
  readonly γ: number;
}

const figures: fc.Arbitrary<Figures> = fc.record({ α: fc.nat(50), β: fc.nat(9), γ: fc.nat(9) });

/** Returns link costs of α, β and γ divided by 7: fractions without a finite binary representation. */
const costsOf = ({ α, β, γ }: Figures, near: Figures = { α, β, γ }): MessageCosts<Fraction> => ({
  within: { perMessage: fraction(near.α, 7), perByte: fraction(near.β, 7) },
  across: { perMessage: fraction(α, 7), perByte: fraction(β, 7) },
  reducePerByte: fraction(γ, 7),
});

/** Returns the number of bytes of the vector as defined in docs/algorithms.md, for elements of one byte. */
const elementCountOf = ({ kind }: Algorithm, P: number, M: number): number =>
  kind === "reduce-scatter" || kind === "all-gather" || kind === "all-to-all" ? M / P : M;

const endOf = (
  algorithm: Algorithm,
  P: number,
  M: number,
  costs: MessageCosts<Fraction>,
  more: { readonly hosts?: number[][]; readonly segments?: number } = {},
): Fraction =>
  simulateScheduleIn(
    fractions,
    algorithm,
    {
      worldSize: P,
      elementCount: elementCountOf(algorithm, P, M),
      bytesPerElement: 1,
      ...((algorithm.kind === "broadcast" || algorithm.kind === "reduce") && { root: 0 }),
      ...more,
    },
    costs,
  ).end;

const log2 = (P: number): number => Math.round(Math.log2(P));

/** Function that returns the numbers of α, β and γ in the time of a collective. */
type ClosedForm = (P: number, M: number) => readonly [messages: number, bytes: number, summed: number];

/**
 * Formulas of Thakur, Rabenseifner and Gropp 2005 and of Patarasuk and Yuan 2009, as listed in surveys of distributed
 * training (Shi et al., arXiv 2003.06307). In this project the parameter server is one of the ranks, and receives one
 * message at a time, so there are P − 1 messages instead of P.
 */
const closedForms: readonly (readonly [Algorithm, "any" | "powers of two", ClosedForm])[] = [
  [ringAllReduce, "any", (P, M) => [2 * (P - 1), (2 * (P - 1) * M) / P, ((P - 1) * M) / P]],
  [directAllReduce, "any", (P, M) => [2 * (P - 1), (2 * (P - 1) * M) / P, ((P - 1) * M) / P]],
  [parameterServerAllReduce, "any", (P, M) => [2 * (P - 1), 2 * (P - 1) * M, (P - 1) * M]],
  [recursiveDoublingAllReduce, "powers of two", (P, M) => [log2(P), log2(P) * M, log2(P) * M]],
  [halvingDoublingAllReduce, "powers of two", (P, M) => [2 * log2(P), (2 * (P - 1) * M) / P, ((P - 1) * M) / P]],
  [ringReduceScatter, "any", (P, M) => [P - 1, ((P - 1) * M) / P, ((P - 1) * M) / P]],
  [directReduceScatter, "any", (P, M) => [P - 1, ((P - 1) * M) / P, ((P - 1) * M) / P]],
  [recursiveHalvingReduceScatter, "powers of two", (P, M) => [log2(P), ((P - 1) * M) / P, ((P - 1) * M) / P]],
  [ringAllGather, "any", (P, M) => [P - 1, ((P - 1) * M) / P, 0]],
  [directAllGather, "any", (P, M) => [P - 1, ((P - 1) * M) / P, 0]],
  [bruckAllGather, "any", (P, M) => [Math.ceil(Math.log2(P)), ((P - 1) * M) / P, 0]],
  [recursiveDoublingAllGather, "powers of two", (P, M) => [log2(P), ((P - 1) * M) / P, 0]],
  [pairwiseAllToAll, "any", (P, M) => [P - 1, ((P - 1) * M) / P, 0]],
  [binomialBroadcast, "powers of two", (P, M) => [log2(P), log2(P) * M, 0]],
  [chainBroadcast, "any", (P, M) => [P - 1, (P - 1) * M, 0]],
  [directReduce, "any", (P, M) => [P - 1, (P - 1) * M, (P - 1) * M]],
  [binomialReduce, "powers of two", (P, M) => [log2(P), log2(P) * M, log2(P) * M]],
  [gatherReduce, "any", (P, M) => [Math.ceil(Math.log2(P)), (P - 1) * M, (P - 1) * M]],
  [reduceScatterGatherReduce, "any", (P, M) => [2 * (P - 1), (2 * (P - 1) * M) / P, ((P - 1) * M) / P]],
  [halvingReduce, "powers of two", (P, M) => [2 * log2(P), (2 * (P - 1) * M) / P, ((P - 1) * M) / P]],
  [chainReduce, "any", (P, M) => (P === 1 ? [0, 0, 0] : [P, P * M, (P - 1) * M])],
];

const sizes = { any: [1, 2, 3, 5, 6, 8, 12], "powers of two": [1, 2, 4, 8, 16] };

describe("closed forms", () => {
  test.each(closedForms)("$name takes exactly the time of its formula, P $1", (algorithm, which, formula) => {
    fc.assert(
      fc.property(
        fc.constantFrom(...sizes[which]),
        fc.integer({ min: 1, max: 9 }),
        figures,
        (P, chunk, { α, β, γ }) => {
          const M = P * chunk;
          const [messages, bytes, summed] = formula(P, M);
          expect(endOf(algorithm, P, M, costsOf({ α, β, γ }))).toEqual(
            fraction(messages * α + bytes * β + summed * γ, 7),
          );
        },
      ),
      { numRuns: 12 },
    );
  });

  test("a torus of X by Y: rings along both dimensions", () => {
    for (const [X, Y] of [
      [2, 2],
      [3, 2],
      [4, 3],
      [5, 1],
    ] as const)
      for (const { α, β, γ } of [
        { α: 5, β: 3, γ: 2 },
        { α: 0, β: 1, γ: 0 },
      ]) {
        const [P, M] = [X * Y, 2 * X * Y];
        const expected = fraction(
          (2 * (X - 1) + 2 * (Y - 1)) * α + ((2 * (P - 1) * M) / P) * β + (((P - 1) * M) / P) * γ,
          7,
        );
        expect(endOf(torusAllReduce, P, M, costsOf({ α, β, γ }))).toEqual(expected);
      }
  });

  test("two levels: n ranks of a host share its link; with n = 1 or m = 1 one level remains", () => {
    const [hostSizes, counts] = [fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })];
    fc.assert(
      fc.property(hostSizes, counts, fc.integer({ min: 1, max: 3 }), figures, figures, (n, m, chunk, near, far) => {
        const [P, M] = [n * m, n * m * chunk];
        const hosts = Array.from({ length: m }, (_, host) => Array.from({ length: n }, (_unused, i) => host * n + i));
        const got = endOf(twoLevelAllReduce, P, M, costsOf(far, near), { hosts });
        const inside = 2 * (n - 1) * near.α + 2 * (n - 1) * m * chunk * near.β;
        const across = 2 * (m - 1) * far.α + 2 * (m - 1) * chunk * n * far.β;
        const sums = ((n - 1) * m + (m - 1)) * chunk * far.γ;
        const exact = fraction(inside + across + sums, 7);
        if (n <= 2) expect(got).toEqual(exact);
        // If a host has three or more ranks, they all start with a message to the same rank, and wait for each other;
        // the first ranks to finish then have the link for themselves.
        expect(fractions.compare(got, fraction(2 * (1.5 * inside + across + sums), 14))).toBeLessThanOrEqual(0);
        const free = endOf(twoLevelAllReduce, P, M, costsOf(far, { α: 0, β: 0, γ: 0 }), { hosts });
        expect(free).toEqual(fraction(across + sums, 7));
        if (n === 1) expect(got).toEqual(endOf(ringAllReduce, P, M, costsOf(far), { hosts }));
      }),
      { numRuns: 25 },
    );
  });

  test("a ring's reduce-scatter and all-gather add up to its all-reduce, term by term", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 5 }), figures, (P, chunk, all) => {
        for (const { α, β, γ } of [
          { ...all, β: 0, γ: 0 },
          { ...all, α: 0, γ: 0 },
          { ...all, α: 0, β: 0 },
        ]) {
          const [scatter, gather, both] = [ringReduceScatter, ringAllGather, ringAllReduce].map((algorithm) =>
            endOf(algorithm, P, P * chunk, costsOf({ α, β, γ })),
          );
          expect(fractions.add(scatter!, gather!)).toEqual(both);
        }
      }),
      { numRuns: 20 },
    );
  });
});

const shapes = (P: number): number[][][] => [
  Array.from({ length: P }, (_, rank) => [rank]),
  Array.from({ length: Math.ceil(P / 2) }, (_, host) => [2 * host, 2 * host + 1].filter((rank) => rank < P)),
  [Array.from({ length: P }, (_, rank) => rank)],
];

const complete = algorithms.filter(({ kind }) => kind !== "send-receive");

const placesOf = ({ kind }: Algorithm) =>
  fc
    .record({ P: fc.integer({ min: 1, max: 9 }), chunk: fc.nat(5), shape: fc.nat(2), costs: figures })
    .map(({ P, chunk, shape, costs }) => ({
      P,
      M: kind === "barrier" ? 0 : P * chunk,
      hosts: shapes(P)[shape]!,
      costs,
    }));

test.each(complete.filter(({ kind }) => kind === "all-reduce"))(
  "$name takes no less than the lower bounds of any all-reduce, wherever the ranks are",
  (algorithm) => {
    fc.assert(
      fc.property(placesOf(algorithm), ({ P, M, hosts }) => {
        const alone = { α: 0, β: 0, γ: 0 };
        const atLeast = (only: Partial<Figures>, least: number): void => {
          const end = endOf(algorithm, P, M, costsOf({ ...alone, ...only }), { hosts });
          expect(fractions.compare(end, fraction(least, 7))).toBeGreaterThanOrEqual(0);
        };
        if (M > 0) atLeast({ α: 1 }, Math.ceil(Math.log2(P)));
        atLeast({ β: 1 }, (2 * (P - 1) * M) / P);
        atLeast({ γ: 1 }, ((P - 1) * M) / P);
      }),
      { numRuns: 8 },
    );
  },
);

describe.each(complete.map((algorithm) => [algorithm.name, algorithm] as const))("%s", (_, algorithm) => {
  test("on unshared links, never takes longer if costs and sizes decrease", () => {
    fc.assert(
      fc.property(placesOf(algorithm), fc.constantFrom("α", "β", "γ"), ({ P, M, costs }, dearer) => {
        const before = endOf(algorithm, P, M, costsOf(costs));
        const others = [endOf(algorithm, P, M, costsOf({ ...costs, [dearer]: costs[dearer] + 1 }))];
        if (algorithm.kind !== "barrier") others.push(endOf(algorithm, P, M + P, costsOf(costs)));
        for (const other of others) expect(fractions.compare(other, before)).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 8 },
    );
  });

  test("takes no longer than the sum over rounds by which algorithms are chosen, and equally long for powers of two", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 3 }), figures, (P, chunk, { α, β, γ }) => {
        const M = algorithm.kind === "barrier" ? 0 : 10_080 * chunk; // divisible by all chunk sizes
        const times = { secondsPerMessage: α, secondsPerByte: β };
        const link: LinkCosts = { within: times, across: times, reduceSecondsPerByte: γ };
        const { end } = simulateSchedule(
          algorithm,
          { worldSize: P, elementCount: elementCountOf(algorithm, P, M), bytesPerElement: 1, root: 0 },
          link,
        );
        const predicted = predictedSeconds(algorithm, { worldSize: P, byteLength: M, root: 0 }, link);
        if (Number.isInteger(Math.log2(P))) expect(end).toBeCloseTo(predicted, 6);
        expect(end).toBeLessThanOrEqual(predicted * (1 + 1e-12));
      }),
      { numRuns: 6 },
    );
  });
});

test("if ranks share a link, more expensive sums may end sooner, because a later message leaves the link to another", () => {
  const end = (γ: number) =>
    endOf(recursiveHalvingReduceScatter, 5, 5, costsOf({ α: 3, β: 3, γ }, { α: 0, β: 1, γ }), {
      hosts: [[0, 1], [2, 3], [4]],
    });
  expect(fractions.compare(end(1), end(0))).toBeLessThan(0);
});

test("ranks of a host without messages to other hosts leave its link to the others", () => {
  // In a pairwise exchange on a host of two ranks and a host of one rank, the messages of the third rank have the
  // incoming link of the first host for themselves.
  const link: LinkCosts = {
    within: { secondsPerMessage: 0, secondsPerByte: 0 },
    across: { secondsPerMessage: 0, secondsPerByte: 1 },
    reduceSecondsPerByte: 0,
  };
  const ends = (hosts: number[][]) =>
    simulateSchedule(pairwiseAllToAll, { worldSize: 3, elementCount: 6, bytesPerElement: 1, hosts }, link).ends;
  expect(ends([[0], [1], [2]])).toEqual([12, 12, 12]);
  expect(ends([[0, 1, 2]])).toEqual([0, 0, 0]);
  // Round 1: 0 → 1 within a host, 1 → 2 and 2 → 0 between hosts, 6 seconds. Round 2: 0 → 2 and 2 → 1 between hosts, 6
  // more seconds.
  expect(ends([[0, 1], [2]])).toEqual([12, 12, 12]);
});

test("supports measured links, and rejects invalid input", () => {
  const size = { worldSize: 4, elementCount: 1000, bytesPerElement: 4 };
  const { across, reduceSecondsPerByte } = ethernetLinks;
  const expected = 6 * (across.secondsPerMessage + 1000 * across.secondsPerByte) + 3 * 1000 * reduceSecondsPerByte;
  expect(simulateSchedule(ringAllReduce, size, ethernetLinks).end).toBeCloseTo(expected, 12);
  expect(simulateSchedule(ringAllReduce, { ...size, elementCount: 0 }, ethernetLinks).end).toBe(0);
  expect(() => simulateSchedule(ringAllReduce, { ...size, worldSize: 0 }, ethernetLinks)).toThrow("worldSize is 0");
  expect(() => simulateSchedule(ringAllReduce, { ...size, elementCount: Number.NaN }, ethernetLinks)).toThrow(
    "elementCount is NaN",
  );
  expect(() => simulateSchedule(ringAllReduce, { ...size, hosts: [[0, 1, 2]] }, ethernetLinks)).toThrow(
    "hosts do not contain rank 3",
  );
  expect(() => simulateSchedule(directSendReceive, size, ethernetLinks)).toThrow("which is a single message");
  const oneSided: Algorithm = {
    ...ringAllReduce,
    name: "one-sided",
    schedule: (at) => ({
      ...ringAllReduce.schedule(at),
      ...(at.rank === 0 && { rounds: ringAllReduce.schedule(at).rounds.slice(1) }),
    }),
  };
  expect(() => simulateSchedule(oneSided, size, ethernetLinks)).toThrow(/one-sided: rank \d of 4 is stuck in round/);
});
