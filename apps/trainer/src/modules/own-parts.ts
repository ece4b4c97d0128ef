import { dirname } from "node:path";
import type { Job, ModuleJob, ModuleKey } from "@skein/job/node";
import { buildLearningRate, type OwnParts, type ScheduledSteps, scheduleStepsOf } from "@skein/step/node";
import { checkedCompression } from "./checked-compression.ts";
import { checkedOptimizer, checkedSchedule, type Origin } from "./checked-optimizer.ts";
import type { ScheduleContext } from "./factories.ts";
import { failWithoutProgram } from "./program-objects.ts";
import { makeOwn, moduleName } from "./load-module.ts";
import type { ProgramParts } from "./program-parts.ts";

const originOf = (key: ModuleKey, module: ModuleJob): Origin => ({
  what: moduleName(key, module),
  folder: dirname(module.file),
});

/**
 * Loads the user-defined optimizer, schedule and compression from modules of the job, or uses the objects that a
 * program passed. Returns an empty object if the job has none of these.
 *
 * @throws ModuleError; ConfigError if a module rejects its options.
 */
export const loadOwnParts = async (
  { optimizer, learningRate, compression, ranks }: Job,
  scheduled: ScheduledSteps,
  program?: ProgramParts,
): Promise<OwnParts> => {
  const { schedule: own, peak, final, warmupSteps } = learningRate;
  const given = (key: ModuleKey): ProgramParts => program ?? failWithoutProgram(key);
  const scheduleContext: ScheduleContext = {
    peak,
    final,
    steps: Math.max(1, scheduleStepsOf(scheduled) - warmupSteps),
  };
  const schedule =
    own &&
    (own.kind === "program"
      ? await given("learningRate.schedule").schedule(scheduleContext)
      : checkedSchedule(
          await makeOwn("learningRate.schedule", own, scheduleContext),
          originOf("learningRate.schedule", own),
        ));
  const optimizerContext = {
    learningRate: buildLearningRate(learningRate, scheduled, schedule),
    totalSteps: scheduled.totalSteps,
  };
  return {
    ...(schedule !== undefined && { schedule }),
    ...(optimizer.kind === "program" && { optimizer: await given("optimizer").optimizer(optimizerContext) }),
    ...(optimizer.kind === "module" && {
      optimizer: checkedOptimizer(
        await makeOwn("optimizer", optimizer, optimizerContext),
        originOf("optimizer", optimizer),
      ),
    }),
    ...(compression.kind === "program" && { compression: await given("compression").compression({ ranks }) }),
    ...(compression.kind === "module" && {
      compression: checkedCompression(
        await makeOwn("compression", compression, { ranks }),
        originOf("compression", compression),
      ),
    }),
  };
};
