import { secretName, toldText } from "../console/told-text.ts";
import { leafText, type LeafValue, leafValues } from "./leaf-values.ts";

/** What modules are given may be named like a secret; no key of ours is. */
const isSecret = (path: string): boolean => {
  const [, own] = /(?:^|\.)options\.(.*)$/s.exec(path) ?? [];
  return own !== undefined && secretName.test(own);
};

/** An option to be shown: without what is secret in addresses, and nothing of one of a module that is named so. */
export const optionText = ({ path, value }: LeafValue): string => (isSecret(path) ? "…" : toldText(leafText(value)));

/** Options of a job by their paths, to be shown: `optimizer.kind` → "adam". Lists and empty objects are values. */
export const flatJob = (job: unknown): Record<string, string> =>
  Object.fromEntries(leafValues(job).flatMap((leaf) => (leaf.path === "" ? [] : [[leaf.path, optionText(leaf)]])));
