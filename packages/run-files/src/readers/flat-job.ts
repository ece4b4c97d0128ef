import { redactSecrets, secretName } from "@skein/cli/node";
import { leafText, type LeafValue, leafValues } from "./leaf-values.ts";

/** Whether the name of a module option suggests a secret. Built-in keys contain no secrets. */
const isSecret = (path: string): boolean => {
  const [, own] = /(?:^|\.)options\.(.*)$/s.exec(path) ?? [];
  return own !== undefined && secretName.test(own);
};

/**
 * Formats an option for display. Secrets in URLs are redacted, and so are module options whose names suggest a secret.
 */
export const optionText = ({ path, value }: LeafValue): string =>
  isSecret(path) ? "…" : redactSecrets(leafText(value));

/**
 * Returns the options of a job by path, for display: `optimizer.kind` → "adam". Lists and empty objects count as
 * values.
 */
export const flatJob = (job: unknown): Record<string, string> =>
  Object.fromEntries(leafValues(job).flatMap((leaf) => (leaf.path === "" ? [] : [[leaf.path, optionText(leaf)]])));
