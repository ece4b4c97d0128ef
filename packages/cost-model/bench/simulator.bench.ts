// Measures the speed of the simulator. Run: node bench/simulator.bench.ts
import { meshPartition } from "@skein/collectives";
import { simulate, type SimulationOptions } from "../src/simulation/simulate.ts";
import type {
  CollectiveTask,
  CollectivePhase,
  Program,
  SimulatedWorld,
  SimulatedTask,
} from "../src/simulation/task.ts";

const ranksPerHost = 8;

const inside = (seconds: number): CollectivePhase => ({
  stream: "intra-node",
  startupSeconds: 1e-5,
  transferSeconds: seconds,
});
const across = (seconds: number): CollectivePhase => ({
  stream: "inter-node",
  startupSeconds: 5e-5,
  transferSeconds: seconds,
});

/**
 * Builds a rank's program of about `numTasks` tasks for the simulator. Every ten tasks are six computations, a
 * collective of the tensor group and the wait for it, and a two-level collective over all ranks and the wait for it.
 */
const programOf = (numTasks: number): Program => {
  const tasks: SimulatedTask[] = [];
  let pending: number | undefined;
  for (let i = 0; tasks.length < numTasks - 1; i++) {
    if (i % 8 === 3) {
      const tensor: CollectiveTask = {
        kind: "collective",
        name: `tensor ${i}`,
        axis: "tensor",
        collective: "all-reduce",
        bytes: 2 ** 20,
        phases: [inside(1e-4)],
        priority: 1,
      };
      const index = tasks.push(tensor) - 1;
      tasks.push({ kind: "wait", for: index });
    } else if (i % 8 === 7) {
      if (pending !== undefined) tasks.push({ kind: "wait", for: pending });
      const data: CollectiveTask = {
        kind: "collective",
        name: `data ${i}`,
        axis: "data",
        collective: "all-reduce",
        bytes: 2 ** 24,
        phases: [inside(1e-3), across(2e-3), inside(1e-3)],
      };
      pending = tasks.push(data) - 1;
    } else tasks.push({ kind: "compute", name: `node ${i}`, seconds: 1e-3 });
  }
  return pending === undefined ? tasks : [...tasks, { kind: "wait", for: pending }];
};

const worldOf = (numRanks: number, numTasks: number): SimulatedWorld => {
  const program = programOf(numTasks);
  const mesh = { data: numRanks / ranksPerHost, tensor: ranksPerHost };
  return {
    programs: Array.from({ length: numRanks }, () => program),
    groups: { data: [Array.from({ length: numRanks }, (_, rank) => rank)], tensor: meshPartition(mesh, "tensor") },
    hosts: meshPartition(mesh, "tensor"),
  };
};

const cases: readonly (readonly [what: string, numRanks: number, numTasks: number, options: SimulationOptions])[] = [
  ["warm-up", 64, 1000, {}],
  ["equal ranks, spans", 10_000, 1000, {}],
  ["equal ranks, no spans", 10_000, 1000, { spans: false }],
  ["one in a hundred is a straggler", 10_000, 1000, { jitter: { seed: 1, stragglers: { share: 0.01, factor: 1.5 } } }],
  ["every rank, no spans", 10_000, 1000, { everyRank: true, spans: false }],
  [
    "all times scatter, no spans",
    10_000,
    1000,
    { jitter: { seed: 1, computeVariation: 0.05, communicationVariation: 0.05 }, spans: false },
  ],
];

console.log("what                             ranks    tasks  classes     seconds      events  events/s   tasks/s");
for (const [what, numRanks, numTasks, options] of cases) {
  const world = worldOf(numRanks, numTasks);
  const begin = performance.now();
  const { symmetry, stepSeconds, numEvents } = simulate(world, options);
  const seconds = (performance.now() - begin) / 1000;
  if (!(stepSeconds > 0)) throw new Error("a step took no time");
  const figures = [
    numRanks,
    numTasks,
    symmetry.classes,
    seconds.toFixed(3),
    numEvents,
    (numEvents / seconds).toExponential(1),
    ((symmetry.classes * numTasks) / seconds).toExponential(1),
  ];
  console.log(
    `${what.padEnd(32)} ${figures.map((figure, i) => String(figure).padStart([5, 8, 8, 11, 11, 9, 9][i]!)).join(" ")}`,
  );
}
