import type { RunFacts } from "../run-facts.ts";

const term = /^([^=!<>]+?)(!=|>=|<=|=|>|<)(.*)$/;

const fits = (options: Readonly<Record<string, string>>, key: string, operator: string, wanted: string): boolean => {
  const value = Object.hasOwn(options, key) ? options[key]! : undefined;
  if (operator === "!=") return value !== wanted;
  if (value === undefined) return false;
  const [a, b] = [Number(value), Number(wanted)];
  const isEqual = value === wanted || (wanted !== "" && value !== "" && a === b);
  if (operator === "=") return isEqual;
  if (Number.isNaN(a) || Number.isNaN(b)) return false;
  return operator === ">" ? a > b : operator === "<" ? a < b : operator === ">=" ? a >= b : a <= b;
};

/**
 * Whether a run is what a person has asked for: words that its name or state holds, and options of its job such as
 * `optimizer.kind=adam`, `batch>=64` or `seed!=1`, apart by spaces; all of them must hold.
 */
export const matchesFilter = (
  { id, state, options }: Pick<RunFacts, "id" | "state" | "options">,
  filter: string,
): boolean =>
  filter
    .split(/\s+/)
    .filter((word) => word !== "")
    .every((word) => {
      const [, key, operator, wanted] = term.exec(word) ?? [];
      if (key === undefined) return id.toLowerCase().includes(word.toLowerCase()) || state === word.toLowerCase();
      return fits(key === "state" ? { state } : options, key, operator!, wanted!);
    });
