import { describe, expect, test } from "vitest";
import { allReduce, broadcastFromRoot, sendReceive } from "../functions/collective.ts";
import { add, tanh } from "../functions/elementwise.ts";
import { matmul } from "../functions/linear.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { canonicalOrder, collectiveOrderOf, type RankCollectives } from "./collective-order.ts";
import { optimize } from "./optimize.ts";
import { blockOnCollectives, scheduleCollectives } from "./schedule-collectives.ts";

const matrix = { dtype: "f32", shape: [4, 4] } as unknown as Tensor;

const traced = (fn: (x: Tensor) => readonly Tensor[], mesh: Record<string, number>): Graph =>
  trace(fn, [matrix], { mesh }).graph;

/** Returns the collectives of ranks that trace different functions. */
const world = (
  fns: readonly ((x: Tensor) => readonly Tensor[])[],
  axes: (rank: number) => RankCollectives["axes"] = () => ({ data: fns.map((_, rank) => rank) }),
): RankCollectives[] =>
  fns.map((fn, rank) => {
    const mesh = Object.fromEntries(Object.entries(axes(rank)).map(([axis, members]) => [axis, members.length]));
    return { axes: axes(rank), collectives: collectiveOrderOf(optimize(traced(fn, mesh))).collectives };
  });

describe("canonicalOrder", () => {
  test("does not depend on the work of a single rank", () => {
    const ranks = [0, 1].map((rank) => (x: Tensor): Tensor[] => {
      const busy = [1, 2, 3].reduce((value) => matmul(value, x), x);
      // Each rank has additional work before a different collective.
      return [allReduce(rank === 0 ? busy : x, "data"), allReduce(tanh(rank === 0 ? x : busy), "data")];
    });
    const alone = ranks.map((fn) => collectiveOrderOf(optimize(traced(fn, { data: 2 }))).order);
    expect(alone).toEqual([
      [1, 0],
      [0, 1],
    ]);
    expect(canonicalOrder(world(ranks))).toEqual([
      [0, 1],
      [0, 1],
    ]);
  });

  test("a collective comes after its dependencies on any rank", () => {
    const shared = (x: Tensor, second: (first: Tensor) => Tensor): Tensor[] => {
      const first = allReduce(allReduce(x, "data"), "data");
      return [first, broadcastFromRoot(second(first), "data")];
    };
    // Only the root's operand is used, and only on the root this operand depends on the first collective.
    const ranks = [
      (x: Tensor): Tensor[] => shared(x, (first) => matmul(first, x)),
      (x: Tensor): Tensor[] => shared(x, () => x),
    ];
    expect(collectiveOrderOf(optimize(traced(ranks[1]!, { data: 2 }))).order).toEqual([0, 2, 1]);
    expect(canonicalOrder(world(ranks))).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
  });

  test("a message is needed only on the ranks in its pairs", () => {
    const ranks = [0, 1, 2].map((rank) => (x: Tensor): Tensor[] => {
      const sum = allReduce(x, "data");
      if (rank === 2) return [sum, allReduce(add(x, 1), "data", "max")];
      const sent = sendReceive(sum, "data", [[0, 1]]);
      return [sum, allReduce(rank === 1 ? sent : x, "data", "max")];
    });
    expect(canonicalOrder(world(ranks))).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0, 1],
    ]);
  });

  test.each<[string, ((x: Tensor) => readonly Tensor[])[], RegExp]>([
    [
      "another operator",
      [(x) => [allReduce(x, "data")], (x) => [allReduce(x, "data", "max")]],
      /collective 1 of its group is all-reduce of 64 bytes of f32 \{"reduction":"max"\} .* on rank 1, but all-reduce of 64 bytes of f32 \{"reduction":"sum"\} .* on rank 0; ranks of a group must trace/,
    ],
    [
      "another priority",
      [(x) => [allReduce(x, "data", "sum", { priority: 1 })], (x) => [allReduce(x, "data", "sum", { priority: 2 })]],
      /\{"priority":2,.* on rank 1, but .*\{"priority":1,.* on rank 0/,
    ],
    [
      "a result that only one rank reads, so that the other drops it",
      [
        (x) => [allReduce(x, "data"), allReduce(tanh(x), "data")],
        (x) => {
          allReduce(tanh(x), "data");
          return [allReduce(x, "data")];
        },
      ],
      /collective 2 of its group is all-reduce .* on rank 0, but rank 1 has only 1 in this group; .* use the result of each on all of them or on none/,
    ],
    [
      "a message that the receiver does not know of",
      [(x) => [sendReceive(x, "data", [[0, 1]])], (x) => [x]],
      /collective 1 of its group is send-receive .*\[\[0,1\]\].* on rank 0, but rank 1 has only 0 in this group/,
    ],
    [
      "a circle",
      [
        (x) => {
          const received = sendReceive(x, "data", [[1, 0]]);
          return [sendReceive(received, "data", [[0, 1]])];
        },
        (x) => {
          const received = sendReceive(x, "data", [[0, 1]]);
          return [sendReceive(received, "data", [[1, 0]])];
        },
      ],
      /wait for each other in a cycle: rank \d needs send-receive .* before send-receive .*; rank \d needs/,
    ],
  ])("rejects ranks with %s by name", (_, ranks, message) => {
    expect(() => canonicalOrder(world(ranks))).toThrow(message);
  });

  test("reports the first difference in the trace, with all ranks on each side", () => {
    const ranks = [0, 1, 2, 3].map((rank) => (x: Tensor): Tensor[] => {
      const sum = allReduce(x, "data");
      const most = allReduce(sum, "data", rank % 2 === 0 ? "max" : "min");
      return rank === 1 ? [allReduce(most, "data", "min")] : [allReduce(most, "data")];
    });
    expect(() => canonicalOrder(world(ranks))).toThrow(
      /^collective 2 of its group is all-reduce [^;]*"min"[^;]* on ranks 1 and 3, but all-reduce [^;]*"max"[^;]* on ranks 0 and 2; ranks of/,
    );
    const late = [0, 1, 2].map(
      (rank) =>
        (x: Tensor): Tensor[] =>
          rank === 0 ? [allReduce(x, "data")] : [x],
    );
    expect(() => canonicalOrder(world(late))).toThrow(/on rank 0, but ranks 1 and 2 have only 0 in this group/);
  });

  test("rejects a cycle of three groups of two ranks, and orders them if no dependency forces a cycle", () => {
    const pairs = { ab: [0, 1], bc: [1, 2], ca: [2, 0] };
    const ofRank = [
      ["ab", "ca"],
      ["bc", "ab"],
      ["ca", "bc"],
    ] as const;
    const axes = (rank: number): RankCollectives["axes"] =>
      Object.fromEntries(ofRank[rank]!.map((axis) => [axis, pairs[axis]]));
    const forced = ofRank.map(([first, second]) => (x: Tensor): Tensor[] => [allReduce(allReduce(x, first), second)]);
    expect(() => canonicalOrder(world(forced, axes))).toThrow(
      /in a cycle: rank \d needs .*; rank \d needs .*; rank \d needs/,
    );
    const free = ofRank.map(([first, second]) => (x: Tensor): Tensor[] => [allReduce(x, first), allReduce(x, second)]);
    // The common order is ab, ca, bc. Without agreement, each rank would begin with the first collective of its trace.
    expect(canonicalOrder(world(free, axes))).toEqual([
      [0, 1],
      [1, 0],
      [0, 1],
    ]);
  });

  test("a graph with blocking collectives keeps the order of its trace", () => {
    const fn = (x: Tensor): Tensor[] => [allReduce(matmul(matmul(x, x), x), "data"), allReduce(x, "data")];
    expect(collectiveOrderOf(optimize(traced(fn, { data: 2 }))).order).toEqual([1, 0]);
    const standing = collectiveOrderOf(optimize(blockOnCollectives(traced(fn, { data: 2 }))));
    expect(standing.order).toEqual([0, 1]);
    expect(
      canonicalOrder([0, 1].map(() => ({ axes: { data: [0, 1] }, collectives: standing.collectives })))[0],
    ).toEqual([0, 1]);
  });
});

test.each([[[0]], [[0, 0]], [[0, 2]], [[1, 0]]])(
  "scheduleCollectives rejects the order %j of two, the second of which needs the first",
  (order) => {
    const graph = traced((x) => [allReduce(allReduce(x, "data"), "data")], { data: 2 });
    expect(() => scheduleCollectives(graph, order)).toThrow(
      /pass each of 0 to 1 once|which it needs; use canonicalOrder/,
    );
  },
);
