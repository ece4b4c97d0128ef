import { leafText, leafValues } from "./leaf-values.ts";

/** Options of a job by their paths: `optimizer.kind` → "adam". Lists and empty objects are values. */
export const flatJob = (job: unknown): Record<string, string> =>
  Object.fromEntries(leafValues(job).flatMap(({ path, value }) => (path === "" ? [] : [[path, leafText(value)]])));
