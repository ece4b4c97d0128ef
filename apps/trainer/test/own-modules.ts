import { appendFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { topKCompressor } from "@skein/compressors";
import { adam, argmax, cast, equal, type GradientTransformation, stepDecay } from "@skein/tensor-core";
import { z } from "zod";
import {
  defineCallbacks,
  defineCompression,
  defineMetrics,
  defineOptimizer,
  defineSchedule,
} from "../src/modules/define.ts";
import type {
  CallbacksFactory,
  CompressionFactory,
  MetricsFactory,
  OptimizerFactory,
  ScheduleFactory,
} from "../src/modules/factories.ts";

// Modules as written by users. Each has the same effect as a built-in component, so that results can be compared.

export const optimizer: OptimizerFactory<{ readonly beta1: number }> = defineOptimizer({
  options: z.strictObject({ beta1: z.number().min(0).lt(1) }),
  create: ({ learningRate }, { beta1 }) => adam({ learningRate, beta1 }) as GradientTransformation<unknown>,
});

/** An optimizer with elementwise operations only, whose state can be sharded over ranks. */
export const byElement: OptimizerFactory = defineOptimizer({
  elementwise: true,
  create: ({ learningRate }) => adam({ learningRate }) as GradientTransformation<unknown>,
});

export const schedule: ScheduleFactory = defineSchedule({
  create: ({ peak }) => stepDecay({ initial: peak, factor: 0.5, every: 4 }),
});

export const compression: CompressionFactory<{ readonly density: number }> = defineCompression({
  options: z.strictObject({ density: z.number().gt(0).max(1).default(0.5) }),
  create: (_, { density }) => topKCompressor({ density }),
});

export const metrics: MetricsFactory = defineMetrics({
  create: () => ({
    rows: ({ logits, batch }) => ({ right: equal(argmax(logits), cast(batch.labels, "i32")) }),
    metrics: { rightShare: { sum: "right", per: "count" } },
  }),
});

interface CallbackOptions {
  readonly file: string;
  readonly throwsAt?: number | undefined;
  readonly stopsAt?: number | undefined;
}

/**
 * Callbacks that write one line per event, some after a delay. The options can make a callback throw, or stop the run.
 */
export const callbacks: CallbacksFactory<CallbackOptions> = defineCallbacks({
  options: z.strictObject({ file: z.string(), throwsAt: z.int().optional(), stopsAt: z.int().optional() }),
  create: (run, { file, throwsAt, stopsAt }) => {
    const write = (event: object): void => appendFileSync(file, `${JSON.stringify(event)}\n`);
    return {
      onStart: async (event) => {
        await setImmediate();
        write(event);
      },
      onStep: (event) => {
        write(event);
        if (event.step === throwsAt) throw new RangeError(`no more of step ${throwsAt}`);
        if (event.step === stopsAt) run.stop();
      },
      onEvaluation: async (event) => {
        await setImmediate();
        write(event);
      },
      onCheckpoint: write,
      onEnd: write,
    };
  },
});
