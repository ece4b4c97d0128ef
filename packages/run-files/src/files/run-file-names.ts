// Names of files in the output folder of a run. A separate module, so that threads that only read do not load the
// writers.

/** Metrics, one line per measurement. */
export const metricsFile = "metrics.jsonl";

/** Job of the run. */
export const jobFile = "job.json";

/** Summary of the run: the output of `--json`. */
export const summaryFile = "summary.json";

/** Provenance of the run, and how the run ended. */
export const provenanceFile = "provenance.json";
