import { argmax, cast, equal, logicalAnd } from "@skein/tensor-core";
import { defineMetrics } from "skein-train";

/**
 * Figures are ratios of sums. `rows` says numbers of each row of a held-out batch, by name; they are added up over all
 * batches and ranks. Here, for each class: how many rows are of it, and of how many of these the model says so.
 */
export default defineMetrics({
  create: (task) => {
    const classes = Array.from({ length: task.classes! }, (_, i) => i);
    return {
      rows: ({ logits, batch }) =>
        Object.fromEntries(
          classes.flatMap((each) => {
            const isIt = equal(cast(batch.labels, "i32"), each);
            return [
              [`there${each}`, isIt],
              [`found${each}`, logicalAnd(equal(argmax(logits), each), isIt)],
            ];
          }),
        ),
      metrics: Object.fromEntries(
        classes.map((each) => [`recall${each}`, { sum: `found${each}`, per: `there${each}` }]),
      ),
    };
  },
});
