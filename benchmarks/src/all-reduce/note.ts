import { type Conditions, describeConditions } from "./conditions.ts";
import type { Pairing } from "./pairings.ts";

/**
 * Returns the note of a row: how the two implementations differ in kind, the conditions of each implementation, and the
 * reason if an implementation is missing.
 */
export const noteOf = (
  { ours, peer, unlike }: Pairing,
  conditions: ReadonlyMap<string, Conditions>,
  reasons: ReadonlyMap<string, string>,
): string => {
  const ran = (who: string, name: string): string[] => {
    const found = conditions.get(name);
    return found === undefined || reasons.has(name) ? [] : [`${who} ${describeConditions(found)}`];
  };
  const missing = [ours, peer].flatMap((name) => (reasons.has(name) ? [`${name}: ${reasons.get(name)!}`] : []));
  return [...(unlike === undefined ? [] : [unlike]), ...ran("ours", ours), ...ran("peer", peer), ...missing].join("; ");
};
