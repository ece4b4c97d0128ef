import { ArgumentError, Tensor } from "@skein/tensor-core";
import { excerpt, formatSpec } from "@skein/tensor-core/backend";

/** Describes an invalid result of `apply` and the suggested fix, for an error message. */
const describe = (value: unknown, rule: string): readonly [what: string, cure: string] => {
  if (value === undefined || value === null)
    return ["nothing", `a function body in braces needs a return: return ${rule}`];
  if (value instanceof Tensor) return [`the tensor ${formatSpec(value)} alone`, `return ${rule}`];
  if (value instanceof Promise) {
    value.catch(() => undefined); // an unhandled rejection would end the process before this error is reported
    return ["a Promise", "it is traced, which cannot wait: remove async and await"];
  }
  if (Array.isArray(value)) return [`a list of ${value.length}: ${excerpt(value.map(String))}`, `return ${rule}`];
  return [excerpt(value), `return ${rule}`];
};

/**
 * Wraps an `apply` so that its result is checked before use.
 *
 * @param outputs Name of the first result in error messages. The name `logits` requires a single tensor; other outputs
 * may be a tree.
 * @returns a function that throws an ArgumentError if the result of `apply` is not a pair of outputs and state. The
 * stack of the error shows the call of `checkedApply`, which created the model, because the function with the invalid
 * result has already returned.
 */
export const checkedApply = <Args extends readonly unknown[], Result>(
  apply: (...args: Args) => Result,
  outputs: "logits" | "outputs",
): ((...args: Args) => Result) => {
  const frames = new Error("made here").stack?.split("\n").slice(2).join("\n");
  return (...args) => {
    const result: unknown = apply(...args);
    const isPair =
      Array.isArray(result) &&
      result.length === 2 &&
      result[1] !== undefined &&
      (outputs === "logits" ? result[0] instanceof Tensor : result[0] !== undefined);
    if (isPair) return result as Result;
    const rule = `[${outputs}, state]`;
    const [what, cure] = describe(result, rule);
    const error = new ArgumentError(`apply returned ${what}, but must return ${rule}; ${cure}`);
    if (frames !== undefined) error.stack = `${error.name}: ${error.message}\n${frames}`;
    throw error;
  };
};
