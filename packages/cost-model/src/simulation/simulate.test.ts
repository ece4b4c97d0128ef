import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { allReduce, compute, phase, wait, worlds } from "../../test/worlds.ts";
import type { RankSpans } from "@skein/tensor-core";
import { simulate, type SimulationOptions } from "./simulate.ts";
import type { CollectiveTask, Program, SimulatedWorld, SimulatedTask } from "./task.ts";

const options: fc.Arbitrary<SimulationOptions> = fc.record({
  steps: fc.integer({ min: 1, max: 3 }),
  concurrent: fc.integer({ min: 1, max: 3 }),
  contention: fc.record({ penaltyPerFlow: fc.constantFrom(0, 0.049, 1.1, -0.5) }),
});

test("golden trace: two ranks, one of them slower, a two-level collective and a collective that waits for it", () => {
  const args = { bytes: 4, axis: "data" } as const;
  const program = (seconds: number): Program => [
    compute("matmul head", seconds),
    allReduce("all-reduce head", "data", [phase(1, 1, "intra-node"), phase(4, 2), phase(1, 0, "intra-node")], {
      startSeconds: 1,
      args,
      after: [0],
    }),
    compute("matmul body", 2),
    allReduce("all-reduce body", "data", [phase(2)], { after: [2] }),
    wait(1),
    compute("update head", 1),
    wait(3),
  ];
  const result = simulate({ programs: [program(3), program(5)], groups: { data: [[0, 1]] }, hosts: [[0, 1]] });
  const flow = (id: number, part: "begin" | "through" | "end") => ({ flow: { id, part } });
  const spansOf = (slower: number) => [
    { name: "matmul head", track: "compute", startSeconds: 0, endSeconds: 3 + slower },
    {
      name: "start all-reduce head",
      track: "host",
      startSeconds: 3 + slower,
      endSeconds: 4 + slower,
      args,
      ...flow(0, "begin"),
    },
    // Begins at 6, when the slower rank has started the collective: 2 seconds within the host, 6 seconds between hosts,
    // 1 second within the host.
    {
      name: "all-reduce head",
      track: "collectives",
      startSeconds: 4 + slower,
      endSeconds: 15,
      args,
      ...flow(0, "through"),
    },
    { name: "matmul body", track: "compute", startSeconds: 4 + slower, endSeconds: 6 + slower },
    {
      name: "start all-reduce body",
      track: "host",
      startSeconds: 6 + slower,
      endSeconds: 6 + slower,
      ...flow(1, "begin"),
    },
    { name: "all-reduce body", track: "collectives", startSeconds: 6 + slower, endSeconds: 17, ...flow(1, "through") },
    {
      name: "wait all-reduce head",
      track: "waiting",
      startSeconds: 6 + slower,
      endSeconds: 15,
      args,
      ...flow(0, "end"),
    },
    { name: "update head", track: "compute", startSeconds: 15, endSeconds: 16 },
    { name: "wait all-reduce body", track: "waiting", startSeconds: 16, endSeconds: 17, ...flow(1, "end") },
  ];
  expect(result).toEqual({
    ranks: [
      { rank: 0, spans: spansOf(0) },
      { rank: 1, spans: spansOf(2) },
    ],
    stepSeconds: 17,
    exposedSeconds: [10, 8],
    exposedByStep: [[10, 8]],
    endSeconds: [17],
    collectives: [
      {
        name: "all-reduce head",
        axis: "data",
        ranks: [0, 1],
        numGroups: 1,
        step: 0,
        readySeconds: 6,
        phases: [
          { stream: "intra-node", beginSeconds: 6, endSeconds: 8 },
          { stream: "inter-node", beginSeconds: 8, endSeconds: 14 },
          { stream: "intra-node", beginSeconds: 14, endSeconds: 15 },
        ],
        endSeconds: 15,
      },
      {
        name: "all-reduce body",
        axis: "data",
        ranks: [0, 1],
        numGroups: 1,
        step: 0,
        readySeconds: 8,
        phases: [{ stream: "inter-node", beginSeconds: 15, endSeconds: 17 }],
        endSeconds: 17,
      },
    ],
    symmetry: { classes: 2, ranks: 2 },
    numEvents: 10, // two starts by all members; start of the transfer and end of four phases
  });
});

describe("laws of the simulator", () => {
  test("one rank per class gives the spans of all ranks, bitwise, for up to 64 ranks", () => {
    const jitter = fc.option(
      fc.record({
        seed: fc.nat(1000),
        computeVariation: fc.constantFrom(0, 0, 0.1),
        communicationVariation: fc.constantFrom(0, 0, 0.2),
        stragglers: fc.record({ share: fc.constantFrom(0, 0.3, 1), factor: fc.constantFrom(0.5, 2) }),
      }),
      { nil: undefined },
    );
    let [fewer, all] = [0, 0];
    fc.assert(
      fc.property(worlds({ most: 8, lanes: 2 }), options, jitter, (world, given, scatter) => {
        const settings = { ...given, ...(scatter && { jitter: scatter }) };
        const [{ symmetry, ...byClass }, { symmetry: whole, ...byRank }] = [
          simulate(world, settings),
          simulate(world, { ...settings, everyRank: true }),
        ];
        expect(whole).toEqual({ classes: world.programs.length, ranks: world.programs.length });
        const { ranks, stepSeconds, exposedSeconds, endSeconds } = byClass;
        const some = { ranks, stepSeconds, exposedSeconds, endSeconds };
        const every = {
          ranks: byRank.ranks,
          stepSeconds: byRank.stepSeconds,
          exposedSeconds: byRank.exposedSeconds,
          endSeconds: byRank.endSeconds,
        };
        // The JSON texts are compared first, which is ten times as fast and equally exact.
        if (JSON.stringify(some) !== JSON.stringify(every)) expect(some).toEqual(every);
        // Each collective represents all equivalent collectives.
        const counted = byClass.collectives.reduce((sum, { numGroups }) => sum + numGroups, 0);
        expect(counted).toBe(byRank.collectives.length);
        if (symmetry.classes < symmetry.ranks) fewer++;
        all++;
      }),
      { numRuns: 70 },
    );
    expect(fewer).toBeGreaterThan(all / 10);
  });

  const spansOn = ({ spans }: RankSpans, tracks: readonly string[]) =>
    spans.filter(({ track }) => tracks.includes(track));

  test("a stream does one thing at a time, nothing begins before its inputs, and phases have their given length", () => {
    fc.assert(
      fc.property(worlds({ lanes: 2 }), options, (world, settings) => {
        const { concurrent = 1, steps = 1 } = settings;
        const result = simulate(world, { ...settings, everyRank: true });
        for (const classOfRank of result.ranks) {
          const program = world.programs[classOfRank.rank]!;
          let clock = 0;
          for (const { startSeconds, endSeconds } of spansOn(classOfRank, ["compute", "host", "waiting"])) {
            expect(startSeconds).toBe(clock); // the compute stream is only idle in waits
            clock = endSeconds;
          }
          expect(clock).toBeLessThanOrEqual(result.endSeconds[steps - 1]!);
          const through = new Map(spansOn(classOfRank, ["collectives"]).map((span) => [span.flow!.id, span]));
          for (const { flow, startSeconds, endSeconds } of spansOn(classOfRank, ["waiting"]))
            expect(endSeconds).toBe(Math.max(startSeconds, through.get(flow!.id)!.endSeconds));
          // Tasks that a collective depends on, in the same step.
          const starts = program.flatMap((task, index) => (task.kind === "collective" ? [{ task, index }] : []));
          for (const [number, { task }] of starts.entries())
            for (const need of task.after ?? []) {
              const needed = starts.findIndex(({ index }) => index === need);
              for (let step = 0; step < steps; step++) {
                const one = result.collectives.find(
                  (other) => other.name === task.name && other.step === step && other.ranks.includes(classOfRank.rank),
                )!;
                expect(one.readySeconds).toBeGreaterThanOrEqual(through.get(step * starts.length + needed)!.endSeconds);
                expect(through.get(step * starts.length + number)!.endSeconds).toBe(one.endSeconds);
              }
            }
          // A stream of a rank runs at most `concurrent` phases of a lane at a time.
          const own = result.collectives.filter(({ ranks }) => ranks.includes(classOfRank.rank));
          for (const stream of ["intra-node", "inter-node"])
            for (const lane of ["lane 0", "lane 1"]) {
              const taken = own
                .filter(({ name }) => name.endsWith(lane))
                .flatMap(({ phases }) =>
                  phases.filter((one) => one.stream === stream && one.endSeconds > one.beginSeconds),
                );
              for (const { beginSeconds: at } of taken)
                expect(taken.filter((one) => one.beginSeconds <= at && at < one.endSeconds).length).toBeLessThanOrEqual(
                  concurrent,
                );
            }
        }
        for (const { name, ranks, phases, readySeconds, endSeconds } of result.collectives) {
          let clock = readySeconds;
          const task = world.programs[ranks[0]!]!.find(
            (one) => one.kind === "collective" && one.name === name,
          ) as CollectiveTask;
          expect(phases.map(({ stream }) => stream)).toEqual(task.phases.map(({ stream }) => stream));
          for (const [i, one] of phases.entries()) {
            expect(one.beginSeconds).toBeGreaterThanOrEqual(clock);
            clock = one.endSeconds;
            const { startupSeconds, transferSeconds } = task.phases[i]!;
            const gains = settings.contention!.penaltyPerFlow < 0 ? 0 : 1 - 1e-9;
            if (gains > 0)
              expect(one.endSeconds - one.beginSeconds).toBeGreaterThanOrEqual(
                (startupSeconds + transferSeconds) * gains - 1e-9,
              );
          }
          expect(endSeconds).toBeGreaterThanOrEqual(clock);
        }
      }),
      { numRuns: 40 },
    );
  });

  /** Returns `world` with one time of one task on one rank increased by `more`. */
  const longer = (world: SimulatedWorld, at: number, which: number, more: number): SimulatedWorld => {
    const rank = at % world.programs.length;
    const program = world.programs[rank]!;
    const index = which % Math.max(1, program.length);
    const task = program[index];
    const changed = program.map((one): SimulatedTask => {
      if (one !== task) return one;
      if (one.kind === "compute") return { ...one, seconds: one.seconds + more };
      if (one.kind === "wait") return one;
      if (which % 2 === 0) return { ...one, startSeconds: (one.startSeconds ?? 0) + more };
      return {
        ...one,
        phases: one.phases.map((old, i) => (i === 0 ? { ...old, transferSeconds: old.transferSeconds + more } : old)),
      };
    });
    return { ...world, programs: world.programs.with(rank, changed) };
  };

  test("with one collective at a time and unshared links, increasing a time makes nothing earlier", () => {
    fc.assert(
      fc.property(
        worlds({ isolated: true }),
        fc.nat(20),
        fc.nat(30),
        fc.double({ min: 0, max: 5, noNaN: true }),
        (world, at, which, more) => {
          const steps = 2;
          const [before, after] = [simulate(world, { steps }), simulate(longer(world, at, which, more), { steps })];
          for (let step = 0; step < steps; step++)
            expect(after.endSeconds[step]).toBeGreaterThanOrEqual(before.endSeconds[step]!);
        },
      ),
    );
  });

  test("with shared links it may, because a later transfer leaves the link to another", () => {
    const world = (seconds: number): SimulatedWorld => ({
      programs: [
        [compute("late", seconds), allReduce("x", "a", [phase(4)])],
        [allReduce("y", "b", [phase(4)]), wait(0), compute("after", 10)],
      ],
      groups: { a: [[0]], b: [[1]] },
      hosts: [[0, 1]],
    });
    expect(simulate(world(0)).stepSeconds).toBe(18);
    expect(simulate(world(9)).stepSeconds).toBe(14);
  });

  test("doubling all times doubles the step, exactly", () => {
    fc.assert(
      fc.property(worlds({ lanes: 2 }), options, (world, settings) => {
        const twice = (program: Program): Program =>
          program.map((task): SimulatedTask => {
            if (task.kind === "compute") return { ...task, seconds: 2 * task.seconds };
            if (task.kind === "wait") return task;
            const phases = task.phases.map(({ stream, startupSeconds, transferSeconds }) =>
              phase(2 * transferSeconds, 2 * startupSeconds, stream),
            );
            return { ...task, phases, startSeconds: 2 * (task.startSeconds ?? 0) };
          });
        const [once, doubled] = [world, { ...world, programs: world.programs.map(twice) }].map((one) =>
          simulate(one, settings),
        );
        expect(doubled!.endSeconds).toEqual(once!.endSeconds.map((seconds) => 2 * seconds));
        expect(doubled!.exposedSeconds).toEqual(once!.exposedSeconds.map((seconds) => 2 * seconds));
      }),
    );
  });

  test("a single rank that waits for each collective at once takes the sum of its tasks", () => {
    const seconds = fc.nat(20);
    fc.assert(
      fc.property(
        fc.array(fc.record({ seconds, start: seconds, startup: seconds, transfer: seconds }), { maxLength: 8 }),
        (rows) => {
          const program = rows.flatMap((row, i): SimulatedTask[] => [
            compute(`${i}`, row.seconds),
            allReduce(`${i}`, "data", [phase(row.transfer, row.startup)], { startSeconds: row.start }),
            wait(3 * i + 1),
          ]);
          const sum = rows.reduce((total, row) => total + row.seconds + row.start + row.startup + row.transfer, 0);
          expect(simulate({ programs: [program], groups: { data: [[0]] } }).stepSeconds).toBe(sum);
        },
      ),
    );
  });

  test("k groups that transfer at once over one host take a + k·b·M + (k − 1)·η·M each; without a penalty the link loses nothing", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.nat(8),
        fc.integer({ min: 1, max: 50 }),
        fc.constantFrom(0, 0.25, 1),
        (k, a, transfer, penalty) => {
          const groups = Array.from({ length: k }, (_, i) => [i, k + i]);
          const program: Program = [allReduce("x", "data", [phase(transfer, a)]), wait(0)];
          const world: SimulatedWorld = {
            programs: groups.flat().map(() => program),
            groups: { data: groups },
            hosts: [groups.map(([i]) => i!), groups.map(([, i]) => i!)],
          };
          const together = simulate(world, { contention: { penaltyPerFlow: penalty } });
          expect(together.stepSeconds).toBe(a + k * transfer + (k - 1) * penalty * transfer);
          expect(together.symmetry.classes).toBe(1);
          // On separate hosts no link is shared.
          expect(simulate({ ...world, hosts: groups }).stepSeconds).toBe(a + transfer);
          // Transfers of different sizes: the shared link is busy until the sum of all transfers.
          const unequal = {
            ...world,
            programs: world.programs.map(
              (_, rank): Program => [allReduce("x", "data", [phase(transfer * (1 + (rank % k)))]), wait(0)],
            ),
          };
          expect(simulate(unequal).stepSeconds).toBeCloseTo((transfer * k * (k + 1)) / 2, 9);
        },
      ),
    );
  });
});

test("a rate changes when another transfer begins or ends, for the remaining bytes", () => {
  const other = (seconds: number, transfer: number): Program => [
    compute("late", seconds),
    allReduce("y", "b", [phase(transfer)]),
  ];
  const world: SimulatedWorld = {
    programs: [[allReduce("x", "a", [phase(10)]), wait(0)], other(4, 3)],
    groups: { a: [[0]], b: [[1]] },
    hosts: [[0, 1]],
  };
  // Alone until 4; then 3 s of its transfer in 6 s, shared with the other transfer; then the last 3 s alone.
  const ends = (penaltyPerFlow: number) =>
    simulate(world, { contention: { penaltyPerFlow } }).collectives.map(({ endSeconds }) => endSeconds);
  expect(ends(0)).toEqual([13, 10]);
  expect(ends(1)).toEqual([16, 13]);
});

test("a transfer that ends as another begins does not change a third by rounding", () => {
  const transfer = 0.11000000000000001;
  const world: SimulatedWorld = {
    programs: [
      [allReduce("x", "a", [phase(transfer)])],
      [allReduce("y", "b", [phase(0.1)]), allReduce("z", "b", [phase(0.1)])],
    ],
    groups: { a: [[0]], b: [[1]] },
    hosts: [[0, 1]],
  };
  // Another transfer runs all the time, so the rate is a third. If this other transfer were divided into two parts,
  // rounding would change the end slightly.
  const [x] = simulate(world, { contention: { penaltyPerFlow: 1 } }).collectives;
  expect(x!.endSeconds).toBe(3 * transfer);
  expect(0.1 * 3 + 3 * (transfer - (0.1 * 3) / 3)).not.toBe(3 * transfer);
});

test("a phase takes as long as its slowest member's part", () => {
  const programs = [3, 7, 5].map(
    (seconds): Program => [allReduce("x", "data", [phase(seconds, 10 - seconds)]), wait(0)],
  );
  for (const order of [
    [0, 1, 2],
    [1, 0, 2],
    [2, 0, 1],
  ])
    expect(simulate({ programs: order.map((i) => programs[i]!), groups: { data: [[0, 1, 2]] } }).stepSeconds).toBe(
      7 + 7,
    );
});

test("lanes do not wait for each other, but share the link; collectives of one lane are sequential", () => {
  const program = (priority: number): Program => [
    allReduce("x", "data", [phase(4)]),
    allReduce("y", "data", [phase(1)], { priority }),
    wait(0),
    wait(1),
  ];
  const ends = (priority: number, concurrent = 1) =>
    simulate(
      { programs: [program(priority), program(priority)], groups: { data: [[0, 1]] } },
      { concurrent },
    ).collectives.map(({ endSeconds }) => endSeconds);
  expect(ends(0)).toEqual([4, 5]);
  expect(ends(3)).toEqual([5, 2]);
  expect(ends(0, 2)).toEqual([5, 2]);
});

test("collectives left running by a step are waited for in the next step, and the steady state is found", () => {
  const program: Program = [
    wait(2, true),
    compute("forward", 3),
    allReduce("x", "data", [phase(5)]),
    compute("backward", 1),
  ];
  const world = { programs: [program, program], groups: { data: [[0, 1]] } };
  const { endSeconds, stepSeconds, exposedSeconds, ranks } = simulate(world, { steps: 4 });
  expect(endSeconds).toEqual([4, 12, 20, 28]);
  expect([stepSeconds, ...exposedSeconds]).toEqual([8, 4, 4]);
  expect(ranks[0]!.spans).toBe(ranks[1]!.spans);
  expect(simulate(world, { steps: 4, spans: false }).ranks).toEqual([]);
});

test("a collective after another collective begins when that is done, and blocks nothing", () => {
  const program: Program = [
    allReduce("x", "data", [phase(5)]),
    allReduce("y", "data", [phase(2, 0, "intra-node")], { after: [0], priority: 1 }),
    compute("meanwhile", 4),
    wait(1),
  ];
  const { ranks, stepSeconds } = simulate({ programs: [program], groups: { data: [[0]] } });
  expect(stepSeconds).toBe(7);
  expect(ranks[0]!.spans.find(({ name }) => name === "meanwhile")!.endSeconds).toBe(4);
  const next: Program = [
    allReduce("y", "data", [phase(2)], { afterPrevious: [1], priority: 1 }),
    allReduce("x", "data", [phase(5)]),
    wait(0),
  ];
  expect(simulate({ programs: [next], groups: { data: [[0]] } }, { steps: 2 }).endSeconds).toEqual(
    // Both collectives at the same time: y ends at 4, x at 7. Then both collectives of the second step.
    [4, 11],
  );
});

test("an empty program, and thousands of collectives of a single rank, take no time", () => {
  expect(simulate({ programs: [[]], groups: {} }, { steps: 2 }).endSeconds).toEqual([0, 0]);
  const alone = Array.from({ length: 5000 }, (_, i): SimulatedTask[] => [
    allReduce(`${i}`, "data", []),
    wait(2 * i),
  ]).flat();
  expect(simulate({ programs: [alone], groups: { data: [[0]] } }).stepSeconds).toBe(0);
});
