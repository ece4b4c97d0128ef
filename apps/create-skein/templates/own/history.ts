import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { defineCallbacks } from "skein-train";
import { z } from "zod";

/**
 * Called in the process that records the run. The callbacks onStep, onCheckpoint and onEnd also exist. Callbacks do not
 * change the results of a run. `run.stop()` ends the run after the current step and saves a checkpoint.
 */
export default defineCallbacks({
  options: z.strictObject({ file: z.string().min(1).describe("File name in the folder of the run.") }),
  create: (run, { file }) => {
    let path = file;
    return {
      onStart: ({ output, step }) => {
        path = join(output, file);
        if (step === 0) appendFileSync(path, "step,loss,accuracy\n");
      },
      onEvaluation: ({ step, loss, accuracy }) => appendFileSync(path, `${step},${loss},${accuracy}\n`),
    };
  },
});
