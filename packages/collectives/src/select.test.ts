import type { CollectiveKind } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostShapes, regionElements, schedulesOf } from "../test/world.ts";
import { algorithms } from "./algorithms/table.ts";
import type { LinkCosts } from "./link-file.ts";
import type { CollectiveSchedule } from "./schedule.ts";
import {
  algorithmSelector,
  type AlgorithmChoice,
  ethernetLinks,
  predictedSeconds,
  selectAlgorithm,
  type SelectionOptions,
} from "./select.ts";

const named = (name: string) => algorithms.find((algorithm) => algorithm.name === name)!;
const kinds = [...new Set(algorithms.map(({ kind }) => kind))];

const linkTimes = fc.record({
  secondsPerMessage: fc.double({ min: 1e-7, max: 1e-3, noNaN: true }),
  secondsPerByte: fc.double({ min: 1e-11, max: 1e-8, noNaN: true }),
});
const links: fc.Arbitrary<LinkCosts> = fc.record({
  within: linkTimes,
  across: linkTimes,
  reduceSecondsPerByte: fc.double({ min: 1e-11, max: 1e-9, noNaN: true }),
});
const sizes = fc.integer({ min: 0, max: 28 }).map((exponent) => 2 ** exponent);
const situations: fc.Arbitrary<SelectionOptions & { link: LinkCosts; hosts: number[][] }> = fc
  .record({
    kind: fc.constantFrom<CollectiveKind>(...kinds),
    worldSize: fc.integer({ min: 1, max: 12 }),
    byteLength: sizes,
    link: links,
    order: fc.constantFrom("rank" as const, "any" as const),
    shape: fc.nat({ max: 6 }),
  })
  .map(({ shape, ...situation }) => ({
    ...situation,
    sharesMemory: false,
    hosts: Object.values(hostShapes(situation.worldSize))[shape]!,
  }));

const secondsOf = (
  { algorithm, segments }: AlgorithmChoice,
  situation: SelectionOptions & { link: LinkCosts },
): number => predictedSeconds(algorithm, { ...situation, segments }, situation.link);

describe("the choice", () => {
  test("has the requested kind and order, and costs no more than any other allowed algorithm", () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const choice = selectAlgorithm(situation);
        expect(choice.algorithm.kind).toBe(situation.kind);
        if (situation.order === "rank" && situation.worldSize > 2) expect(choice.algorithm.rankOrder).toBe(true);
        const seconds = secondsOf(choice, situation);
        for (const algorithm of algorithms) {
          if (
            algorithm.kind !== situation.kind ||
            (situation.order === "rank" && !algorithm.rankOrder && situation.worldSize > 2)
          )
            continue;
          for (const segments of [1, 2, 4, 8]) {
            if (segments > (algorithm.maxSegments ?? 1)) continue;
            expect(seconds).toBeLessThanOrEqual(secondsOf({ algorithm, segments }, situation) * (1 + 1e-9));
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  test("with any order, an all-reduce is never slower than the ring, and never faster than the bounds", () => {
    fc.assert(
      fc.property(situations, (given) => {
        const situation = {
          ...given,
          kind: "all-reduce" as const,
          order: "any" as const,
          hosts: hostShapes(given.worldSize)["all alone"]!,
        };
        const { worldSize: P, byteLength: S, link: costs } = situation;
        const seconds = secondsOf(selectAlgorithm(situation), situation);
        expect(seconds).toBeLessThanOrEqual(secondsOf({ algorithm: named("ring-all-reduce"), segments: 1 }, situation));
        const { secondsPerMessage, secondsPerByte } = costs.across;
        const bytes = ((2 * (P - 1)) / P) * S * secondsPerByte;
        const sums = ((P - 1) / P) * S * costs.reduceSecondsPerByte;
        expect(seconds).toBeGreaterThanOrEqual(
          Math.max(Math.ceil(Math.log2(P)) * secondsPerMessage, bytes, sums) * (1 - 1e-9),
        );
      }),
    );
  });

  test("changes with bytes at most once for a pair of algorithms, where their costs cross", () => {
    fc.assert(
      fc.property(situations, (situation) => {
        // The time of each candidate is a line over S, or with segments a maximum of lines: above some size, the
        // candidate with fewer bytes stays faster.
        const alone = algorithms
          .filter(({ kind, maxSegments }) => kind === situation.kind && maxSegments !== undefined)
          .map((algorithm) => ({ algorithm, segments: 1 }));
        const steps = Array.from({ length: 29 }, (_, exponent) => 2 ** exponent);
        for (const a of alone) {
          for (const b of alone) {
            const ahead = steps.map(
              (byteLength) =>
                secondsOf(a, { ...situation, byteLength }) < secondsOf(b, { ...situation, byteLength }) * (1 - 1e-9),
            );
            const changes = ahead.filter((is, i) => i > 0 && is !== ahead[i - 1]).length;
            expect(changes, `${a.algorithm.name} and ${b.algorithm.name}`).toBeLessThanOrEqual(1);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  test("takes more time for more bytes, slower links and slower sums, with any algorithm", () => {
    fc.assert(
      fc.property(
        situations,
        fc.double({ min: 1, max: 4, noNaN: true }),
        fc.integer({ min: 0, max: 3 }),
        (situation, factor, what) => {
          const { within, across, reduceSecondsPerByte } = situation.link;
          const times = (part: typeof within, alpha: number, beta: number) => ({
            secondsPerMessage: part.secondsPerMessage * alpha,
            secondsPerByte: part.secondsPerByte * beta,
          });
          const [bytes, alpha, beta, gamma] = [0, 1, 2, 3].map((i) => (i === what ? factor : 1)) as [
            number,
            number,
            number,
            number,
          ];
          const slower = {
            ...situation,
            byteLength: situation.byteLength * bytes,
            link: {
              within: times(within, alpha, beta),
              across: times(across, alpha, beta),
              reduceSecondsPerByte: reduceSecondsPerByte * gamma,
            },
          };
          expect(secondsOf(selectAlgorithm(slower), slower)).toBeGreaterThanOrEqual(
            secondsOf(selectAlgorithm(situation), situation) * (1 - 1e-9),
          );
        },
      ),
    );
  });

  test("is a direct algorithm in shared memory; one rank sends nothing", () => {
    for (const byteLength of [0, 64, 2 ** 26]) {
      const chosen = kinds.map((kind) => selectAlgorithm({ kind, worldSize: 6, byteLength, sharesMemory: true }));
      expect(chosen.map(({ algorithm, segments }) => `${algorithm.name}, ${segments}`).sort()).toEqual([
        "binomial-broadcast, 1",
        "direct-all-gather, 1",
        "direct-all-reduce, 1",
        "direct-reduce-scatter, 1",
        "dissemination-barrier, 1",
        "pairwise-all-to-all, 1",
        "reduce-scatter-gather-reduce, 1",
        "send-receive, 1",
      ]);
      for (const kind of kinds) {
        const { algorithm, segments } = selectAlgorithm({ kind, worldSize: 1, byteLength, sharesMemory: false });
        expect(algorithm.cost({ worldSize: 1, byteLength, segments }).messages).toBe(0);
        expect(segments).toBe(1);
      }
    }
  });

  test("on Ethernet has few rounds for small vectors, few bytes for large ones, and is the chain across hosts", () => {
    const chosen = (situation: Partial<SelectionOptions>): string =>
      selectAlgorithm({ kind: "all-reduce", worldSize: 8, byteLength: 64, sharesMemory: false, ...situation }).algorithm
        .name;
    const large = 2 ** 26;
    expect(chosen({})).toBe("gather-all-reduce");
    expect(chosen({ byteLength: large })).toBe("direct-all-reduce");
    expect(
      chosen({
        byteLength: large,
        hosts: [
          [0, 1, 2, 3],
          [4, 5, 6, 7],
        ],
      }),
    ).toBe("chain-all-reduce");
    expect(chosen({ order: "any", byteLength: large, worldSize: 16, hosts: hostShapes(16)["hosts of 4 and 3"]! })).toBe(
      "two-level-all-reduce",
    );
    expect(chosen({ kind: "broadcast" })).toBe("binomial-broadcast");
    expect(chosen({ kind: "broadcast", byteLength: large })).toBe("chain-broadcast");
    expect(chosen({ kind: "reduce" })).toBe("gather-reduce");
    expect(chosen({ kind: "reduce", worldSize: 3 })).toBe("direct-reduce");
    expect(chosen({ kind: "reduce", worldSize: 4, byteLength: 2 ** 18 })).toBe("reduce-scatter-gather-reduce");
    expect(chosen({ kind: "reduce", byteLength: large })).toBe("chain-reduce");
    expect(chosen({ kind: "reduce", order: "any" })).toBe("binomial-reduce");
    expect(chosen({ kind: "reduce", order: "any", byteLength: 2 ** 18 })).toBe("halving-reduce");
    expect(chosen({ kind: "all-to-all" })).toBe("bruck-all-to-all");
    expect(chosen({ kind: "all-to-all", byteLength: large })).toBe("pairwise-all-to-all");
  });

  test("of a selector does not depend on earlier choices", () => {
    fc.assert(
      fc.property(
        situations,
        fc.array(fc.tuple(fc.constantFrom<CollectiveKind>(...kinds), sizes), { maxLength: 6 }),
        (situation, before) => {
          const select = algorithmSelector(situation);
          for (const [kind, byteLength] of before) select(kind, byteLength);
          expect(select(situation.kind, situation.byteLength)).toEqual(selectAlgorithm(situation));
        },
      ),
      { numRuns: 50 },
    );
  });

  test("is made from the caller's candidates, and throws without a suitable candidate", () => {
    const ring = named("ring-all-reduce");
    const situation = { kind: "all-reduce", worldSize: 4, byteLength: 64, sharesMemory: false } as const;
    expect(selectAlgorithm({ ...situation, order: "any" }, [ring]).algorithm).toBe(ring);
    expect(() => selectAlgorithm(situation, [ring])).toThrow(
      /no algorithm for the collective "all-reduce" on 4 ranks among 1 candidates/,
    );
  });
});

/**
 * Returns the time at which the last rank has finished. Each rank sends one message and receives one message at a time,
 * in α + β·b each; sums take no time.
 */
const simulatedSeconds = (schedules: readonly CollectiveSchedule[], alpha: number, beta: number): number => {
  const free = { sends: schedules.map(() => 0), receives: schedules.map(() => 0) };
  let ready = schedules.map(() => 0);
  for (let round = 0; round < schedules[0]!.rounds.length; round++) {
    const sends = schedules.map(({ rounds }) => rounds[round]!.filter((step) => step.action === "send"));
    const done = [...ready];
    for (let nth = 0; nth < Math.max(...sends.map(({ length }) => length)); nth++) {
      for (const [rank, steps] of sends.entries()) {
        const step = steps[nth];
        if (step === undefined) continue;
        const end =
          Math.max(ready[rank]!, free.sends[rank]!, free.receives[step.peer]!) + alpha + beta * step.source.count;
        free.sends[rank] = free.receives[step.peer] = end;
        done[step.peer] = Math.max(done[step.peer]!, end);
      }
    }
    ready = done;
  }
  return Math.max(...ready, ...free.sends);
};

// If ranks work in turns, the prediction for pipelined segments is a bound, because messages of the two trees collide
// at ranks. For uneven halves the prediction is always a bound, because a rank with less work need not wait for the
// busiest rank of a round.
const nearly: { readonly [name: string]: number } = {
  "double-binary-tree-all-reduce": 0.3,
  "halving-doubling-all-reduce": 0.25,
  "halving-reduce": 0.05,
  "recursive-doubling-all-reduce": 0.15,
};

test.each(algorithms)("$name: the prediction equals a simulation of its messages", (algorithm) => {
  const n = 24 * 720_720 ** 2;
  for (const worldSize of [2, 3, 4, 6, 7, 8, 16]) {
    const { input, output } = regionElements(algorithm.kind, worldSize, n);
    const byteLength = algorithm.kind === "all-gather" ? output : input;
    for (const segments of algorithm.maxSegments === undefined ? [1] : [1, 4, 16]) {
      for (const alpha of [1, n / 10, n]) {
        const line = { secondsPerMessage: alpha, secondsPerByte: 1 };
        const predicted = predictedSeconds(
          algorithm,
          { worldSize, byteLength, segments },
          { within: line, across: line, reduceSecondsPerByte: 0 },
        );
        const simulated = simulatedSeconds(schedulesOf(algorithm, worldSize, n, { segments }), alpha, 1);
        const powerOfTwo = Number.isInteger(Math.log2(worldSize));
        const tolerance = algorithm.name.startsWith("double")
          ? 0.3
          : powerOfTwo || (segments === 1 && algorithm.name !== "halving-reduce")
            ? 1e-9
            : (nearly[algorithm.name] ?? 1e-9);
        expect(
          Math.abs(predicted / simulated - 1),
          `${worldSize} ranks, ${segments} segments: ${predicted}, not ${simulated}`,
        ).toBeLessThanOrEqual(tolerance);
      }
    }
  }
});

test("unmeasured links are those of 10 Gbit/s Ethernet across hosts", () => {
  expect(ethernetLinks.across.secondsPerByte).toBe(8 / 10e9);
  const situation = { kind: "all-reduce", worldSize: 5, byteLength: 4096, sharesMemory: false } as const;
  expect(selectAlgorithm(situation)).toEqual(selectAlgorithm({ ...situation, link: ethernetLinks }));
});
