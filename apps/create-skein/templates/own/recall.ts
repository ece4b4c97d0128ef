import { argmax, cast, equal, logicalAnd } from "@skein/tensor-core";
import { defineMetrics } from "skein-train";

/**
 * Metrics are ratios of sums. `rows` returns named numbers for each row of a held-out batch, which are added up over
 * all batches and ranks. In this example, for each class: the number of rows of the class, and the number of correctly
 * classified rows of the class.
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
