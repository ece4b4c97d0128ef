import { secretName, redactSecrets } from "../console/redact-secrets.ts";
import { leafText, type LeafValue, leafValues } from "./leaf-values.ts";

/** Whether an option of a module has the name of a secret; built-in keys never do. */
const isSecret = (path: string): boolean => {
  const [, own] = /(?:^|\.)options\.(.*)$/s.exec(path) ?? [];
  return own !== undefined && secretName.test(own);
};

/**
 * Format an option for display: secrets in addresses are redacted, and so are options of modules with names of secrets.
 */
export const optionText = ({ path, value }: LeafValue): string =>
  isSecret(path) ? "…" : redactSecrets(leafText(value));

/** Options of a job by path, for display: `optimizer.kind` → "adam". Lists and empty objects are values. */
export const flatJob = (job: unknown): Record<string, string> =>
  Object.fromEntries(leafValues(job).flatMap((leaf) => (leaf.path === "" ? [] : [[leaf.path, optionText(leaf)]])));
