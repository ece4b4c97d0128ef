import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { defineCallbacks } from "skein-train";
import { z } from "zod";

/**
 * Called in the process that keeps the record of a run; onStep, onCheckpoint and onEnd are there, too. They change no
 * number. `run.stop()` ends the run after the step at hand, saved.
 */
export default defineCallbacks({
  options: z.strictObject({ file: z.string().min(1).describe("In the folder of the run.") }),
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
