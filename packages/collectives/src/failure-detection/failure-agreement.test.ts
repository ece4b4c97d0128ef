import { expect, test } from "vitest";
import { VirtualClock } from "../../test/network-clock.ts";
import { FailureAgreement, type FailureDecision } from "./failure-agreement.ts";
import {
  decodeFailureReport,
  encodeFailureReport,
  type FailureReport,
  longestFailureReport,
} from "./failure-report.ts";

const lost = (rank: number): FailureReport => ({ kind: "lost", rank, tag: 7, reason: "closed" });
const timeout = (rank: number): FailureReport => ({ kind: "timeout", rank, tag: 7, reason: "nothing was received" });

/** Returns ranks whose reports reach each other immediately, except for the pairs in `cut`. */
const world = (size: number, waitsFor: readonly (number | undefined)[] = [], cut: readonly string[] = []) => {
  const clock = new VirtualClock();
  const decisions: (FailureDecision | undefined)[] = Array.from({ length: size });
  const ranks: FailureAgreement[] = Array.from(
    { length: size },
    (_, rank) =>
      new FailureAgreement({
        rank,
        clock,
        graceMilliseconds: 300,
        waiting: () => (waitsFor[rank] === undefined ? undefined : { peer: waitsFor[rank], tag: 7 }),
        broadcast: (report) =>
          ranks.forEach((other, to) => to !== rank && !cut.includes(`${rank}-${to}`) && other.receive(rank, report)),
        decided: (decision) => {
          expect(decisions[rank], "decided once").toBeUndefined();
          decisions[rank] = decision;
        },
      }),
  );
  return { clock, ranks, decisions, blamed: () => decisions.map((decision) => decision?.rank) };
};

test("decides after the grace time, and all name the lost rank", () => {
  const { clock, ranks, decisions, blamed } = world(4);
  ranks[0]!.suspect(lost(2));
  clock.advance(299);
  expect(decisions).toEqual([undefined, undefined, undefined, undefined]);
  clock.advance(1);
  expect(blamed()).toEqual([2, 2, 2, 2]);
  expect(decisions[1]).toMatchObject({ kind: "lost", reporter: 0 });
});

test("if a rank gave up because of another, names the other", () => {
  const { clock, ranks, blamed } = world(4, [], ["0-3"]);
  ranks[3]!.suspect(lost(0)); // Rank 0's socket closed; its report is still in transit.
  ranks[3]!.receive(0, lost(2));
  clock.advance(300);
  expect(blamed()[3]).toBe(2);
});

test("in a chain of waiting ranks, names the rank that does not wait", () => {
  const { clock, ranks, decisions, blamed } = world(5, [4, 0, 1, undefined, 3]);
  ranks[2]!.suspect(timeout(1)); // The rank that times out first is far from the cause.
  clock.advance(300);
  expect(blamed()).toEqual([3, 3, 3, 3, 3]);
  expect(decisions[3]).toMatchObject({ kind: "timeout", rank: 3 });
});

test("two ranks that cannot reach each other blame each other; others follow the first report", () => {
  const { clock, ranks, blamed } = world(3, [], ["0-1", "1-0"]);
  ranks[0]!.suspect(lost(1));
  ranks[1]!.suspect(lost(0));
  clock.advance(300);
  expect(blamed()).toEqual([1, 0, 1]);
});

test("a report from the watcher of the processes decides at once, for all ranks", () => {
  const { clock, ranks, decisions, blamed } = world(3);
  ranks[0]!.suspect(lost(1));
  ranks[0]!.decide({ ...lost(2), reason: "exited with signal 9" });
  expect(decisions[0]).toMatchObject({ rank: 2, reason: "exited with signal 9" });
  ranks[1]!.decide({ ...lost(2), reason: "exited with signal 9" });
  clock.advance(300);
  expect(blamed()).toEqual([2, 2, 1]); // Rank 2 already knew that rank 1 is lost.
});

test("decides a disagreement without grace time", () => {
  const { ranks, blamed } = world(2);
  ranks[0]!.suspect({ kind: "disagree", rank: 1, tag: 7, reason: "8 bytes, not 4" });
  expect(blamed()).toEqual([1, 1]);
});

test("prefers a disagreement to the report of a lost rank", () => {
  const { ranks, decisions } = world(2);
  ranks[0]!.suspect(lost(1));
  ranks[0]!.receive(1, { kind: "disagree", rank: 0, tag: 7, reason: "8 bytes, not 4" });
  expect(decisions[0]).toMatchObject({ kind: "disagree", reporter: 1 });
});

test("decides nothing after the world was closed", () => {
  const { clock, ranks, blamed } = world(2);
  ranks[0]!.suspect(lost(1));
  ranks[0]!.cancel();
  clock.advance(300);
  expect(blamed()).toEqual([undefined, 1]);
});

test("encodes reports within the size limit for any reason, and rejects other bytes", () => {
  expect(decodeFailureReport(encodeFailureReport(lost(3)))).toEqual(lost(3));
  const long = encodeFailureReport({ ...lost(1), reason: "\u0001".repeat(50_000) });
  expect(long.byteLength).toBeLessThanOrEqual(longestFailureReport);
  expect(decodeFailureReport(long).reason).toHaveLength(2000);
  const report = { kind: "lost", rank: 1, tag: 0, reason: "" };
  const others = [
    {},
    null,
    [],
    ...[{ rank: -1 }, { tag: 0.5 }, { kind: "dead" }, { reason: "a".repeat(2001) }, { more: 1 }].map((part) => ({
      ...report,
      ...part,
    })),
  ];
  for (const text of ["", "{", ...others.map((other) => JSON.stringify(other))])
    expect(() => decodeFailureReport(new TextEncoder().encode(text)), text).toThrow(SyntaxError);
});
