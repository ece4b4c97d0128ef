/** What a job file of skein-train says. Checked there, not here: what it refuses becomes a row. */
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
 * Lay jobs over each other, later ones on top. An object that names a `kind` takes the place of the one below; any
 * other is laid over it key by key; a key that is undefined takes away what was below. `epochs` takes the place of
 * `steps`, and the other way round, as on the trainer's command line.
 */
export const layJobs = (base: JobFile, ...over: readonly JobFile[]): JobFile => over.reduce(layJob, base);
