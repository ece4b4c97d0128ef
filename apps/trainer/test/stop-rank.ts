import { parentPort, workerData } from "node:worker_threads";
import { joinWorld, type WorldConnection } from "@skein/collectives/node";
import type { Job } from "@skein/job/node";
import { buildParts, type DeviceState, initState } from "@skein/step/node";
import { jit, randomKey, unsharded } from "@skein/tensor-core";
import { openBackend } from "../src/backend/backend.ts";
import { prepare } from "../src/preparation/prepare.ts";
import { StopSignal } from "../src/rank/stop-signal.ts";
import { trainLoop } from "../src/rank/train-loop.ts";

export interface StopRank {
  readonly connection: WorldConnection;
  readonly job: Job;
  /** Step after which a stop is requested and decided. */
  readonly step: number;
  /**
   * When this rank receives the stop: before it checks whether step `step` was the last step, or only when it is about
   * to begin the next step.
   */
  readonly learns: "after the step" | "while it evaluates";
  /** Whether ranks communicate during evaluation, as with a sharded model. */
  readonly together: boolean;
}

export type StopAnswer = { readonly done: number; readonly saved: readonly number[] } | { readonly error: string };

// Entry point of a rank's thread: a training loop with its own stop signal, as ranks of different processes have.
if (parentPort !== null) {
  const { connection, job, step, learns, together } = workerData as StopRank;
  const { backend, close } = await openBackend("cpu", { memory: connection.memory });
  try {
    const { data, model, totalSteps } = await prepare(job);
    const built = buildParts({ job, model, totalSteps, train: data.train });
    const parts = together ? { ...built, model: { ...model, sharding: unsharded } } : built;
    const stop = StopSignal.create(0);
    const heed = (done: number, now: StopRank["learns"]): void => {
      if (done === step && learns === now) stop.decide(stop.request());
    };
    const saved: number[] = [];
    const world = joinWorld(connection);
    const done = await trainLoop(
      (await jit(initState(parts), backend, { mesh: parts.mesh })(
        randomKey(job.seed) as never,
      )) as unknown as DeviceState,
      {
        job,
        parts,
        backend,
        communicators: { data: world },
        world,
        waitClock: { seconds: 0 },
        rank: connection.rank,
        train: data.train,
        predicts: data.predicts,
        totalSteps,
        stepOffset: 0,
        firstStep: 0,
        stop,
        output: "nowhere",
        evaluate: async () => {
          if (together) {
            const met = await world.exchangeTexts("evaluating");
            if (met.some((text) => text !== "evaluating")) throw new Error(`met ${met.join()}`);
          }
          return { correct: 0, lossSum: 0, count: 1 };
        },
        checkpoints: {
          save: (_, number) => Promise.resolve(void saved.push(number)),
          look: () => {},
          idle: () => Promise.resolve(),
        },
        report: {
          stepped: (number) => heed(number, "after the step"),
          evaluated: (number) => heed(number, "while it evaluates"),
          updated: () => {},
          moved: () => {},
          routed: () => {},
          histograms: () => {},
          remark: () => {},
          damaged: () => {},
          cutShort: () => {},
        },
      },
    );
    parentPort.postMessage({ done, saved } satisfies StopAnswer);
  } catch (error) {
    parentPort.postMessage({ error: String(error) } satisfies StopAnswer);
  } finally {
    close();
  }
}
