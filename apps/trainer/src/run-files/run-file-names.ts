// Files in the output folder of a run, by which threads that only read know them without loading what writes them.

/** A line for each measured moment. */
export const metricsFile = "metrics.jsonl";

/** The job of a run. */
export const jobFile = "job.json";

/** What `--json` prints, beside the results. */
export const summaryFile = "summary.json";

/** Where the run comes from, and how it ended. */
export const provenanceFile = "provenance.json";
