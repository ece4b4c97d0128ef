import { secretName, toldText } from "../provenance/told-text.ts";
import { leafText, leafValues } from "./leaf-values.ts";

/** What modules are given may be named like a secret; no key of ours is. */
const isSecret = (path: string): boolean => {
  const [, own] = /(?:^|\.)options\.(.*)$/s.exec(path) ?? [];
  return own !== undefined && secretName.test(own);
};

/**
 * Options of a job by their paths, to be shown: `optimizer.kind` → "adam". Lists and empty objects are values. What is
 * secret in addresses, and options of modules that are named like secrets, are left out.
 */
export const flatJob = (job: unknown): Record<string, string> =>
  Object.fromEntries(
    leafValues(job).flatMap(({ path, value }) =>
      path === "" ? [] : [[path, isSecret(path) ? "…" : toldText(leafText(value))]],
    ),
  );
