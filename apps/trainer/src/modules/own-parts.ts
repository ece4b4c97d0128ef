import { dirname } from "node:path";
import type { Aggregator } from "@skein/compressors";
import type { GradientTransformation, Schedule } from "@skein/tensor-core";
import { buildLearningRate } from "../building/build-learning-rate.ts";
import type { Job, ModuleJob } from "../job/job.ts";
import { checkedCompression } from "./checked-compression.ts";
import { checkedOptimizer, checkedSchedule, type Origin } from "./checked-optimizer.ts";
import type { OptimizerContext, ScheduleContext } from "./factories.ts";
import { makeOwn, moduleName } from "./load-module.ts";
import type { ModuleKey } from "./module-keys.ts";

/** Parts of a training step that modules of the job make. */
export interface OwnParts {
  /** Of what follows the warm-up. */
  readonly schedule?: Schedule | undefined;
  readonly optimizer?: GradientTransformation<unknown> | undefined;
  readonly compression?: Aggregator | undefined;
}

const originOf = (key: ModuleKey, module: ModuleJob): Origin => ({
  what: moduleName(key, module),
  folder: dirname(module.file),
});

/**
 * Load what modules of the job make of its training step; nothing where it names none.
 *
 * @throws ModuleError, ConfigError for options that a module does not take.
 */
export const loadOwnParts = async (
  { optimizer, learningRate, compression, ranks }: Job,
  totalSteps: number,
): Promise<OwnParts> => {
  const { schedule: own, peak, final, warmupSteps } = learningRate;
  const schedule =
    own &&
    checkedSchedule(
      await makeOwn("learningRate.schedule", own, {
        peak,
        final,
        steps: Math.max(1, totalSteps - warmupSteps),
      } satisfies ScheduleContext),
      originOf("learningRate.schedule", own),
    );
  const rate = buildLearningRate(learningRate, totalSteps, schedule);
  return {
    ...(schedule !== undefined && { schedule }),
    ...(optimizer.kind === "module" && {
      optimizer: checkedOptimizer(
        await makeOwn("optimizer", optimizer, { learningRate: rate, totalSteps } satisfies OptimizerContext),
        originOf("optimizer", optimizer),
      ),
    }),
    ...(compression.kind === "module" && {
      compression: checkedCompression(
        await makeOwn("compression", compression, { ranks }),
        originOf("compression", compression),
      ),
    }),
  };
};
