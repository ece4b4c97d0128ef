import { parentPort, workerData } from "node:worker_threads";
import { joinWorld } from "@skein/collectives/node";
import { createCpuBackend } from "@skein/cpu-kernels";
import { type Communicators, NdArray } from "@skein/tensor-core";
import { lengthOf } from "../../src/index.ts";
import type { Row } from "../rows/row.ts";
import { compiledStep, firstState, type RankStep } from "./compiled-step.ts";
import {
  type Answer,
  gradientOf,
  numSteps,
  type PostedStep,
  type PostedWalk,
  type RankData,
  seed,
  steppersOf,
  toPosted,
  worldWalks,
} from "./world-walks.ts";

const { connection, module } = workerData as RankData;
const { rank, worldSize, memory } = connection;
const world = joinWorld(connection);
const groups = new Map<string, Communicators>();

/**
 * Returns the communicators of a row's mesh axes. The number of groups in a world is limited, so rows with the same
 * axes share communicators.
 */
const communicatorsOf = (row: Row): Communicators => {
  const partitions = row.axes?.(worldSize).groups ?? {};
  const layout = JSON.stringify(partitions);
  const known = groups.get(layout);
  if (known !== undefined) return known;
  const split = Object.entries(partitions).map(([axis, partition]) => [axis, world.split(partition, axis)] as const);
  const made: Communicators = { data: world, ...Object.fromEntries(split) };
  groups.set(layout, made);
  return made;
};

const run = async (): Promise<PostedWalk[]> => {
  const backend = await createCpuBackend({ memory, module });
  const walks: PostedWalk[] = [];
  for (const walk of worldWalks) {
    const { row, bucket } = walk;
    const compiled = steppersOf(walk, worldSize).map((stepper) => compiledStep(stepper, backend, communicatorsOf(row)));
    const step = async (gradient: NdArray, before: readonly NdArray[], number: number): Promise<RankStep> => {
      try {
        return await compiled[number % compiled.length]!.run(gradient, before, seed, number);
      } catch (error) {
        throw new Error(`${row.name} on ${lengthOf(bucket)} elements, step ${number}: ${(error as Error).message}`, {
          cause: error,
        });
      }
    };
    const first = await firstState(row.aggregator, bucket, backend);
    let state: readonly NdArray[] = first;
    const steps: PostedStep[] = [];
    for (let number = 0; number < numSteps; number++) {
      const sentBefore = world.bytesSent();
      const { mean, sent, state: next } = await step(gradientOf(bucket, rank, number), state, number);
      steps.push({
        mean: toPosted(mean),
        sent: toPosted(sent),
        state: next.map(toPosted),
        bytesSent: world.bytesSent() - sentBefore,
      });
      state = next;
    }
    const gradient = gradientOf(bucket, rank, numSteps).toNumbers();
    const poisoned = rank === worldSize - 1 ? gradient.with(gradient.length >> 1, NaN) : gradient;
    const { mean } = await step(NdArray.from(poisoned), state, numSteps);
    for (const one of compiled) one.release();
    walks.push({ first: first.map(toPosted), steps, poisonedMean: toPosted(mean) });
  }
  return walks;
};

const post = (answer: Answer): void => parentPort!.postMessage(answer);
run().then(
  (walks) => post({ walks }),
  (error: unknown) => post({ error: (error as Error).message }),
);
