/**
 * Content of a skein-train job file. Only the trainer validates it: a job that the trainer rejects becomes a row with
 * the error.
 */
export interface JobFile {
  readonly [key: string]: unknown;
}

const isObject = (value: unknown): value is JobFile =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const layJob = (below: JobFile, above: JobFile): JobFile => {
  const job: Record<string, unknown> = { ...below };
  if ("steps" in above) delete job["epochs"];
  if ("epochs" in above) delete job["steps"];
  for (const [key, value] of Object.entries(above)) {
    const old = job[key];
    job[key] = isObject(old) && isObject(value) && !("kind" in value) ? layJob(old, value) : value;
  }
  return job;
};

/**
 * Merges jobs; later jobs take precedence. An object with a `kind` replaces the previous object, and other objects are
 * merged key by key. An undefined value deletes the key. `epochs` replaces `steps`, and vice versa, as on the trainer's
 * command line.
 */
export const layJobs = (base: JobFile, ...over: readonly JobFile[]): JobFile => over.reduce(layJob, base);
