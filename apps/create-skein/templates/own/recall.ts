import { argmax, cast, equal, logicalAnd } from "@skein/tensor-core";
import { defineMetrics } from "skein-train";

/**
 * Recall of each class as metrics of a run. `rows` returns named numbers for each row of a held-out batch: for each
 * class, whether the row has this class, and whether it is also classified correctly. The numbers are summed over all
 * batches and ranks. Each metric is the ratio of two sums.
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
