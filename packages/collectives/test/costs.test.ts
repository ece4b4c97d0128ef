import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import type { Algorithm, ElementRange, ScheduleParameters, ScheduleCost, Step } from "../src/schedule.ts";
import { sentElements, sentMessages } from "../src/schedule.ts";
import { slotCount } from "../src/control-block/layout.ts";
import { combiningKinds, inPlaceKinds } from "../src/requests/kind-facts.ts";
import { nearlySquare } from "../src/topology.ts";
import {
  countedCost,
  dependsOnHosts,
  hostShapes,
  messageEnds,
  parametersOf,
  regionElements,
  schedulesOf,
} from "./world.ts";

interface Formula {
  readonly evaluate: (symbols: Readonly<Record<string, number>>) => number;
  /** Whether the cost formula is exact if P is a power of two, and approximate for any other P. */
  readonly forPowersOfTwo: boolean;
}

interface CostRow {
  readonly name: string;
  readonly kind: string;
  readonly rounds: Formula;
  readonly messages: Formula;
  readonly bytes: Formula;
  readonly summed: Formula;
  readonly order: string;
}

const symbols = ["P", "Q", "S", "X", "Y", "k", "m"];
const powerOfTwoMark = "(P = Q)";

/**
 * Compiles a cost formula of docs/algorithms.md, such as `2 · (P − 1) / P · S`, to a function. Apart from the operator
 * signs, the formulas are valid JavaScript.
 */
const formula = (text: string): Formula => {
  const code = text
    .replace(powerOfTwoMark, "")
    .replaceAll("·", "*")
    .replaceAll("−", "-")
    .replaceAll("log₂P", "Math.log2(P)")
    .replaceAll("⌈", "Math.ceil(")
    .replaceAll("⌊", "Math.floor(")
    .replaceAll(/[⌉⌋]/g, ")")
    .replaceAll(/\b(min|max)\(/g, "Math.$1(");
  const compiled = new Function(...symbols, `return ${code};`) as (...values: number[]) => number;
  return {
    evaluate: (values) => compiled(...symbols.map((symbol) => values[symbol]!)),
    forPowersOfTwo: text.includes(powerOfTwoMark),
  };
};

const page = readFileSync(new URL("../../../docs/algorithms.md", import.meta.url), "utf8");
const rows: CostRow[] = page
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter((cells) => cells.length === 10 && cells[1]!.startsWith("`"))
  .map(([, name, kind, rounds, messages, bytes, summed, order]) => ({
    name: name!.replaceAll("`", ""),
    kind: kind!,
    rounds: formula(rounds!),
    messages: formula(messages!),
    bytes: formula(bytes!),
    summed: formula(summed!),
    order: order!,
  }));

const reduces = (algorithm: Algorithm): boolean => combiningKinds.has(algorithm.kind);

test("the page has one row per algorithm, and states which ones sum in rank order", () => {
  const line = (name: string, kind: string, order: string): string => `${name}: ${kind}, ${order}`;
  expect(rows.map(({ name, kind, order }) => line(name, kind, order)).sort()).toEqual(
    algorithms
      .map((algorithm) =>
        line(algorithm.name, algorithm.kind, reduces(algorithm) ? (algorithm.rankOrder ? "rank" : "other") : "–"),
      )
      .sort(),
  );
});

// Divisible by every product of two world sizes up to 16, and by 24 segments.
const divisible = 24 * 720_720 ** 2;

/**
 * Returns the operand size S of docs/algorithms.md in elements, for request size `n` as defined by `CollectiveRequest`.
 */
const operandElements = (algorithm: Algorithm, worldSize: number, n: number): number => {
  const { input, output } = regionElements(algorithm.kind, worldSize, n);
  return algorithm.kind === "all-gather" ? output : input;
};

const evenHosts = (worldSize: number, k: number): number[][] =>
  Array.from({ length: worldSize / k }, (_, host) => Array.from({ length: k }, (_, local) => host * k + local));

const close = (actual: number, wanted: number, what: string): void => {
  expect(Math.abs(actual - wanted), `${what}: ${actual}, not ${wanted}`).toBeLessThanOrEqual(
    1e-9 * Math.max(1, Math.abs(wanted)),
  );
};

const overlap = (a: ElementRange, b: ElementRange, inPlace: boolean): boolean => {
  const region = ({ region: name }: ElementRange): string => (inPlace && name === "input" ? "output" : name);
  return region(a) === region(b) && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
};

describe.each(rows)("$name", ({ name, rounds, messages, bytes, summed }) => {
  const algorithm = algorithms.find((candidate) => candidate.name === name)!;
  const inPlace = inPlaceKinds.has(algorithm.kind);
  const onHosts = dependsOnHosts(algorithm);
  const settings = (worldSize: number): Partial<ScheduleParameters>[] =>
    Object.values(onHosts ? hostShapes(worldSize) : { none: undefined }).flatMap((hosts) =>
      (algorithm.maxSegments === undefined ? [1] : [1, 2, 3, 8, 20]).map((segments) => ({
        segments,
        ...(hosts && { hosts }),
      })),
    );

  test.each(Array.from({ length: 15 }, (_, i) => i + 2))("counts agree with the formulas on %i ranks", (P) => {
    for (const k of onHosts ? Array.from({ length: P }, (_, i) => i + 1).filter((size) => P % size === 0) : [1]) {
      const hosts = evenHosts(P, k);
      const S = 4 * operandElements(algorithm, P, divisible);
      const [X, Y] = nearlySquare(P);
      const values = { P, Q: 2 ** Math.floor(Math.log2(P)), S, X, Y, k, m: P / k };
      const schedules = schedulesOf(algorithm, P, divisible, onHosts ? { hosts } : {});
      const counted = countedCost(schedules, hosts, 4);
      for (const [what, count, { evaluate, forPowersOfTwo }] of [
        ["rounds", counted.rounds, rounds],
        ["messages", counted.messages, messages],
        ["bytes", counted.bytes, bytes],
        ["bytes summed", counted.reducedBytes, summed],
      ] as const) {
        const wanted = evaluate(values);
        if (forPowersOfTwo && values.Q < P) {
          expect(count, what).toBeLessThanOrEqual(2 * wanted);
          expect(count, what).toBeGreaterThanOrEqual(wanted / 2);
        } else close(count, wanted, `${what}, k = ${k}`);
      }
    }
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16])(
    "the declared cost on %i ranks equals the cost of its schedules",
    (worldSize) => {
      for (const hosts of Object.values(hostShapes(worldSize))) {
        const hasRoot = algorithm.kind === "broadcast" || algorithm.kind === "reduce";
        for (const root of hasRoot ? new Set([0, worldSize >> 1, worldSize - 1]) : [0]) {
          const counted = countedCost(
            schedulesOf(algorithm, worldSize, divisible, { ...(onHosts && { hosts }), root }),
            hosts,
            1,
          );
          const byteLength = operandElements(algorithm, worldSize, divisible);
          // Without hosts, algorithms that depend on hosts still use the default hosts, and the other algorithms are
          // priced on these hosts.
          const declared = algorithm.cost({ worldSize, byteLength, hosts, root });
          const figures = ({
            rounds: r,
            messages: count,
            bytes: sent,
            reducedBytes,
            busiest,
            path,
          }: ScheduleCost): number[] => [
            r,
            count,
            sent,
            reducedBytes,
            ...[busiest, path].flatMap((load) => [
              load.within.messages,
              load.within.bytes,
              load.across.messages,
              load.across.bytes,
              load.reducedBytes,
            ]),
          ];
          figures(declared).forEach((figure, i) =>
            close(figure, figures(counted)[i]!, `figure ${i} on ${JSON.stringify(hosts)}`),
          );
        }
      }
    },
  );

  test("n segments add n − 1 rounds and multiply messages by n; bytes stay the same", () => {
    if (algorithm.maxSegments === undefined) return;
    for (const worldSize of [2, 3, 4, 7, 12]) {
      for (const hosts of Object.values(onHosts ? hostShapes(worldSize) : { none: undefined })) {
        const place = hosts ? { hosts } : {};
        const whole = countedCost(
          schedulesOf(algorithm, worldSize, divisible, place),
          hostShapes(worldSize)["all alone"]!,
          1,
        );
        for (const segments of [2, 3, 8]) {
          const schedules = schedulesOf(algorithm, worldSize, divisible, { ...place, segments });
          const counted = countedCost(schedules, hostShapes(worldSize)["all alone"]!, 1);
          expect(counted.rounds).toBe(whole.rounds + segments - 1);
          expect(counted.messages).toBe(segments * whole.messages);
          close(counted.bytes, whole.bytes, "bytes");
          close(counted.reducedBytes, whole.reducedBytes, "bytes summed");
          const declared = algorithm.cost({ worldSize, byteLength: divisible, segments, ...place });
          expect([declared.rounds, declared.messages]).toEqual([counted.rounds, counted.messages]);
          close(declared.bytes, counted.bytes, "bytes declared");
        }
      }
    }
  });

  test("every send has a matching receive of the same size in the same round", () => {
    for (const worldSize of [1, 2, 3, 5, 8, 13]) {
      for (const n of [0, 1, worldSize - 1, worldSize + 1, 100]) {
        for (const setting of settings(worldSize)) {
          const schedules = schedulesOf(algorithm, worldSize, n, setting);
          expect(messageEnds(schedules, "send"), JSON.stringify(setting)).toEqual(messageEnds(schedules, "receive"));
          expect(new Set(schedules.map((schedule) => schedule.rounds.length)).size, "ranks keep step").toBe(1);
        }
      }
    }
  });

  test("a round does not receive into what it sends, and does not receive two messages into one range", () => {
    const same = (a: ElementRange, b: ElementRange): boolean =>
      a.region === b.region && a.offset === b.offset && a.count === b.count;
    const wrong: Step[][] = [];
    for (const worldSize of [2, 3, 5, 8, 12]) {
      for (const setting of settings(worldSize)) {
        for (const steps of schedulesOf(algorithm, worldSize, 100, setting).flatMap((schedule) => schedule.rounds)) {
          const receives = steps.filter(
            (step): step is Extract<Step, { action: "receive" }> => step.action === "receive",
          );
          for (const [i, receive] of receives.entries()) {
            for (const step of steps)
              if (step.action === "send" && overlap(step.source, receive.target, inPlace)) wrong.push([step, receive]);
            for (const other of receives.slice(i + 1)) {
              const together =
                receive.combine === "reduce" && other.combine === "reduce" && same(receive.target, other.target);
              if (!together && overlap(receive.target, other.target, inPlace)) wrong.push([receive, other]);
            }
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  test("no rank sends a peer more messages in one round than there are slots between threads", () => {
    let most = 0;
    for (const worldSize of [2, 3, 5, 8, 16]) {
      for (const setting of settings(worldSize)) {
        for (const { rounds: ofRank } of schedulesOf(algorithm, worldSize, 1000, setting)) {
          let held: number[] = []; // received in one round and released in the next
          for (const steps of ofRank) {
            const sent: number[] = [];
            const kept: number[] = [];
            for (const step of steps) {
              if (step.action === "send" && step.returned !== true)
                sent[step.peer] = (sent[step.peer] ?? held[step.peer] ?? 0) + 1;
              if (step.action === "receive" && step.combine === "reduce" && step.returned === true)
                kept[step.peer] = (kept[step.peer] ?? 0) + 1;
            }
            for (const count of sent) most = Math.max(most, count ?? 0);
            held = kept;
          }
        }
      }
    }
    expect(most).toBeLessThanOrEqual(slotCount);
  });

  test("a single rank sends nothing", () => {
    expect(sentMessages(algorithm.schedule({ ...parametersOf(0, 1, 10), to: 0, from: 0 }))).toBe(0);
    expect(algorithm.cost({ worldSize: 1, byteLength: 10 })).toMatchObject({
      rounds: 0,
      messages: 0,
      bytes: 0,
      reducedBytes: 0,
    });
  });
});

test("chunks that do not divide evenly still add up to the formula over all ranks", () => {
  for (const name of ["ring-all-reduce", "direct-all-reduce"]) {
    const algorithm = algorithms.find((candidate) => candidate.name === name)!;
    for (const worldSize of [2, 3, 7, 16]) {
      const total = schedulesOf(algorithm, worldSize, 10_007).reduce(
        (sum, schedule) => sum + sentElements(schedule),
        0,
      );
      expect(total).toBe(2 * (worldSize - 1) * 10_007);
    }
  }
});

test("no algorithm beats the lower bounds", () => {
  for (const algorithm of algorithms.filter(({ kind }) => kind === "all-reduce")) {
    for (let P = 2; P <= 16; P++) {
      for (const hosts of Object.values(hostShapes(P))) {
        for (const segments of [1, 4]) {
          const { path } = algorithm.cost({ worldSize: P, byteLength: divisible, hosts, segments });
          const what = `${algorithm.name} on ${JSON.stringify(hosts)}, ${segments} segments`;
          const least = Math.max(...[path.within.bytes, path.across.bytes].map((bytes) => bytes / divisible));
          // A rank that receives one message at a time needs at least ⌈log₂P⌉ messages to receive data of all other
          // ranks.
          expect(path.within.messages + path.across.messages, what).toBeGreaterThanOrEqual(Math.ceil(Math.log2(P)));
          if (hosts.length === P) expect(least, what).toBeGreaterThanOrEqual((2 * (P - 1)) / P - 1e-9);
          else if (hosts.length > 1)
            expect(path.across.bytes / divisible, what).toBeGreaterThanOrEqual(
              (2 * (hosts.length - 1)) / hosts.length - 1e-9,
            );
          expect(path.reducedBytes / divisible, what).toBeGreaterThanOrEqual((P - 1) / P - 1e-9);
        }
      }
    }
  }
});

test("a reduce-scatter plus an all-gather cost an all-reduce; degenerate two-level forms cost the same as flat ones", () => {
  const cost = (name: string, worldSize: number, hosts?: number[][]): ScheduleCost =>
    algorithms
      .find((algorithm) => algorithm.name === name)!
      .cost({ worldSize, byteLength: divisible, ...(hosts && { hosts }) });
  const short = ({ rounds, messages, bytes, reducedBytes }: ScheduleCost): number[] =>
    [rounds, messages, bytes, reducedBytes].map((x) => Math.round(x));
  for (let P = 2; P <= 16; P++) {
    for (const form of ["ring", "direct"]) {
      const parts = [cost(`${form}-reduce-scatter`, P), cost(`${form}-all-gather`, P)].map(short);
      expect(short(cost(`${form}-all-reduce`, P))).toEqual(parts[0]!.map((figure, i) => figure + parts[1]![i]!));
    }
    expect(short(cost("two-level-all-reduce", P, evenHosts(P, 1)))).toEqual(short(cost("ring-all-reduce", P)));
    expect(short(cost("masters-all-reduce", P, evenHosts(P, 1)))).toEqual(short(cost("ring-all-reduce", P)));
    expect(short(cost("two-level-all-reduce", P, evenHosts(P, P)))).toEqual(short(cost("direct-all-reduce", P)));
    expect(short(cost("chain-all-reduce", P, evenHosts(P, P)))).toEqual(short(cost("direct-all-reduce", P)));
    if (nearlySquare(P)[1] === 1) expect(short(cost("torus-all-reduce", P))).toEqual(short(cost("ring-all-reduce", P)));
  }
});
