import { parentPort, workerData } from "node:worker_threads";
import { meshPartition } from "@skein/collectives";
import { joinWorld } from "@skein/collectives/node";
import { createCpuBackend } from "@skein/cpu-kernels";
import { evaluate, flattenTree, type NdArray } from "@skein/tensor-core";
import {
  type Answer,
  argumentsOf,
  forwardOf,
  moveOf,
  placesArray,
  type PostedRun,
  type PostedStep,
  type RankData,
  rowsOf,
  stepOf,
  toPosted,
  worlds,
} from "./walks.ts";

const { number, connection, module } = workerData as RankData;
const { rank, memory } = connection;
const world = joinWorld(connection);

const run = async (): Promise<PostedRun> => {
  const backend = await createCpuBackend({ memory, module });
  const { levels, walks, moves } = worlds[number]!;
  const communicators = {
    expert: world,
    ...Object.fromEntries(Object.keys(levels).map((axis) => [axis, world.split(meshPartition(levels, axis), axis)])),
  };
  const steps: PostedStep[] = [];
  for (const walk of walks) {
    const [key, stepKey, x, cotangent] = argumentsOf(walk, rank);
    const stepped: unknown = await evaluate(stepOf(walk), backend, { communicators })(key, stepKey, x, cotangent);
    const forward = evaluate(forwardOf(walk), backend, { communicators });
    await forward(key, stepKey, x); // Ranks agree on the order of their collectives during compilation.
    const before = world.bytesSent();
    await forward(key, stepKey, x);
    steps.push({
      results: flattenTree<NdArray>(stepped).leaves.map(toPosted),
      bytesSent: world.bytesSent() - before,
    });
  }
  const moved: PostedStep[] = [];
  const move = evaluate(moveOf, backend, { communicators });
  for (const [before, after] of moves) {
    const args = [rowsOf(before, rank, world.worldSize), placesArray(before), placesArray(after)] as const;
    await move(...args);
    const sentBefore = world.bytesSent();
    const rows = await move(...args);
    moved.push({ results: flattenTree<NdArray>(rows).leaves.map(toPosted), bytesSent: world.bytesSent() - sentBefore });
  }
  return { steps, moves: moved };
};

const post = (answer: Answer): void => parentPort!.postMessage(answer);
run().then(
  (answer) => post(answer),
  (error: unknown) => post({ error: (error as Error).message }),
);
