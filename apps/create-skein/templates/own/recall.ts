import { argmax, cast, equal, logicalAnd } from "@skein/tensor-core";
import { defineMetrics } from "skein-train";

/**
 * Metrics are ratios of sums. `rows` returns named numbers per row of a held-out batch; the numbers are added up over
 * all batches and ranks. Here, for each class: the number of rows of the class, and how many of these rows the model
 * classifies correctly.
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
