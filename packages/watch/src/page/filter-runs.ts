import type { RunFacts } from "@skein/run-files/node";
const term = /^([^=!<>]+?)(!=|>=|<=|=|>|<)(.*)$/;
const spacedOperator = /\s*(!=|>=|<=|=|>|<)\s*/g;
/** Matches a range such as `32..128`, with both ends included. */
const span = /^(.+?)\.\.(.+)$/;

/** Whether a text is a number in a range. Undefined: `wanted` is not a range of numbers. */
const isWithin = (value: string, wanted: string): boolean | undefined => {
  const [, first, last] = span.exec(wanted) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (Number.isNaN(from) || Number.isNaN(to)) return undefined;
  return value !== "" && Number(value) >= from && Number(value) <= to;
};

const fits = (options: Readonly<Record<string, string>>, key: string, operator: string, wanted: string): boolean => {
  const value = Object.hasOwn(options, key) ? options[key]! : undefined;
  if (operator === "!=") return value !== wanted && (value === undefined || isWithin(value, wanted) !== true);
  if (value === undefined) return false;
  const [a, b] = [Number(value), Number(wanted)];
  const isEqual = value === wanted || isWithin(value, wanted) === true || (wanted !== "" && value !== "" && a === b);
  if (operator === "=") return isEqual;
  if (Number.isNaN(a) || Number.isNaN(b)) return false;
  return operator === ">" ? a > b : operator === "<" ? a < b : operator === ">=" ? a >= b : a <= b;
};

/**
 * Whether a run matches a filter. A filter consists of terms separated by spaces: words in the run's name or state, and
 * conditions on its job options such as `optimizer.kind=adam`, `batch>=64`, `seed!=1` or
 * `learningRate.peak=0.001..0.1`. All terms must match. Spaces around an operator are ignored.
 */
export const matchesFilter = (
  { id, state, options }: Pick<RunFacts, "id" | "state" | "options">,
  filter: string,
): boolean =>
  filter
    .replaceAll(spacedOperator, "$1")
    .split(/\s+/)
    .filter((word) => word !== "")
    .every((word) => {
      const [, key, operator, wanted] = term.exec(word) ?? [];
      if (key === undefined) return id.toLowerCase().includes(word.toLowerCase()) || state === word.toLowerCase();
      return fits(key === "state" ? { state } : options, key, operator!, wanted!);
    });
