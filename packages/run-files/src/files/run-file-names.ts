// Names of files in the output folder of a run. The names are in a separate module, so that threads that only read do
// not load the writers.

/** Metrics file, with one line per measurement. */
export const metricsFile = "metrics.jsonl";

/** File with the job of the run. */
export const jobFile = "job.json";

/** File with the summary of the run, which is also the output of `--json`. */
export const summaryFile = "summary.json";

/** File with the provenance of the run, and how the run ended. */
export const provenanceFile = "provenance.json";
