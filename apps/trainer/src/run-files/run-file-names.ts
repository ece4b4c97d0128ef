// Names of files in the output folder of a run. A separate module, so that threads that only read need not load the
// writers.

/** One line per measurement. */
export const metricsFile = "metrics.jsonl";

/** The job of a run. */
export const jobFile = "job.json";

/** Output of `--json`, saved with the results. */
export const summaryFile = "summary.json";

/** Provenance of the run, and how it ended. */
export const provenanceFile = "provenance.json";
