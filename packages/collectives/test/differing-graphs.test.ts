import { Worker } from "node:worker_threads";
import { compileWasm, createSharedMemory } from "@skein/cpu-kernels";
import type { Graph } from "@skein/tensor-core";
import { canonicalOrder, collectiveOrderOf, interpretRanks, optimize } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createThreadWorld } from "../src/node.ts";
import {
  axesOf,
  graphOf,
  mutants,
  type Program,
  programs,
  referenceInputs,
  twins,
  worldSize,
} from "./differing-programs.ts";
import type { DifferingAnswer, DifferingRankData } from "./differing-rank.ts";

const ranks = Array.from({ length: worldSize }, (_, rank) => rank);

/** Returns graphs as ranks compile them: first each rank separately, then in the order on which all ranks agree. */
const compiled = (program: Program): Graph[] => {
  const traced = ranks.map((rank) => graphOf(program, rank));
  const orders = canonicalOrder(
    traced.map((graph, rank) => ({ axes: axesOf(rank), collectives: collectiveOrderOf(optimize(graph)).collectives })),
  );
  return traced.map((graph, rank) => optimize(graph, { schedule: orders[rank]! }));
};

/**
 * Simulates ranks that run their graphs like threads. A rank starts a collective by appending it to the lane of its
 * priority, and blocks when it waits for a collective. A collective completes when it is the first of its lane on all
 * participating ranks.
 *
 * @returns the ranks that never finish.
 */
const stuck = (graphs: readonly Graph[]): number[] => {
  const at = graphs.map(() => 0);
  const lanes = graphs.map(() => [[], [], [], []] as number[][]);
  const done = graphs.map(() => new Set<number>());
  const what = (rank: number, id: number | undefined): string | undefined => {
    const node = id === undefined ? undefined : graphs[rank]!.nodes[id]!;
    return (
      node &&
      JSON.stringify([node.params["collective"], node.params["axis"], node.params["pairs"], node.params["reduction"]])
    );
  };
  const partnersOf = (rank: number, id: number): number[] => {
    const { axis, pairs } = graphs[rank]!.nodes[id]!.params as { axis: "all"; pairs?: readonly (readonly number[])[] };
    const members = axesOf(rank)[axis];
    return pairs === undefined ? [...members] : pairs.flat().map((end) => members[end]!);
  };
  for (let moved = true; moved; ) {
    moved = false;
    for (const rank of ranks) {
      for (; at[rank]! < graphs[rank]!.nodes.length; at[rank]!++, moved = true) {
        const node = graphs[rank]!.nodes[at[rank]!]!;
        if (node.op === "collective-start") lanes[rank]![Number(node.params["priority"] ?? 0)]!.push(node.id);
        if (node.op === "collective-done" && !done[rank]!.has(node.inputs[0]!.node)) break;
      }
      lanes[rank]!.forEach(([first], lane) => {
        if (first === undefined) return;
        const partners = partnersOf(rank, first);
        if (!partners.every((partner) => what(partner, lanes[partner]![lane]![0]) === what(rank, first))) return;
        for (const partner of partners) done[partner]!.add(lanes[partner]![lane]!.shift()!);
        moved = true;
      });
    }
  }
  return ranks.filter((rank) => at[rank]! < graphs[rank]!.nodes.length);
};

test("law: ranks with different graphs never deadlock", () => {
  fc.assert(
    fc.property(programs, (program) => {
      expect(stuck(compiled(program))).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test("law: ranks with the same graph keep the order that each would choose alone", () => {
  fc.assert(
    fc.property(programs, (program) => {
      const same = program.map((call) => ({ ...call, message: undefined, own: call.own.map(() => call.own[0]!) }));
      const own = collectiveOrderOf(optimize(graphOf(same, 0)));
      const orders = canonicalOrder(ranks.map((rank) => ({ axes: axesOf(rank), collectives: own.collectives })));
      for (const order of orders) expect(order).toEqual(own.order);
    }),
    { numRuns: 100 },
  );
});

test("law: one differing collective of one rank is always detected before anything runs", () => {
  fc.assert(
    fc.property(mutants, (program) => {
      const { rank, kind } = program.find(({ mutation }) => mutation !== undefined)!.mutation!;
      fc.pre(kind !== "fail");
      expect(() => compiled(program), `${kind} on rank ${rank}`).toThrow(
        /^collective \d+ of its group is .*; ranks of a group must trace the same|^collectives wait for each other in a cycle/,
      );
    }),
    { numRuns: 120 },
  );
});

test("law: threads with different work between the same collectives get the bits of the reference; if one rank has a different collective or no graph, all get an error and none waits", async () => {
  // One world for all programs, because starting threads takes longer than running the programs.
  const chosen = fc.sample(fc.tuple(programs, twins, programs, mutants), 16).flat();
  const world = createThreadWorld({
    worldSize,
    memory: createSharedMemory(),
    kernels: "none",
    timeoutMilliseconds: 60_000,
  });
  const module = await compileWasm("simd");
  const answers = await Promise.all(
    ranks.map((rank) => {
      const workerData: DifferingRankData = { connection: world.connection(rank), module, programs: chosen };
      const worker = new Worker(new URL("./differing-rank.ts", import.meta.url), { workerData });
      world.watch(rank, worker);
      return new Promise<DifferingAnswer>((resolve, reject) => worker.once("message", resolve).once("error", reject));
    }),
  );
  await world.close();
  expect(answers.map((answer) => ("error" in answer ? answer.error : undefined))).toEqual(ranks.map(() => undefined));
  chosen.forEach((program, i) => {
    const { rank: otherwise, kind } = program.find(({ mutation }) => mutation !== undefined)?.mutation ?? {};
    if (kind !== undefined) {
      const said = answers.map((answer) => "outcomes" in answer && answer.outcomes[i]);
      const others = said.filter((_, rank) => kind !== "fail" || rank !== otherwise);
      expect(said[otherwise!], JSON.stringify(program)).toMatch(
        kind === "fail" ? /^this rank fails to trace$/ : /^collective \d|in a cycle/,
      );
      expect(others).toEqual(
        others.map(() =>
          kind === "fail"
            ? `rank ${otherwise} could not compile its graph: this rank fails to trace; all ranks of a world compile together; mend what that rank computes for its place`
            : others[0],
        ),
      );
      return;
    }
    const expected = interpretRanks(
      ranks.map((rank) => graphOf(program, rank)),
      ranks.map(referenceInputs),
      ranks.map(axesOf),
    );
    answers.forEach((answer, rank) => {
      for (const round of [0, 1])
        expect(
          "outcomes" in answer && answer.outcomes[i]![round],
          `rank ${rank} of ${JSON.stringify(program)}`,
        ).toEqual(expected[rank]!.map(({ data }) => [...data]));
    });
  });
});
