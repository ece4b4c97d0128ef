import { describe } from "./describe.ts";
import { ArgumentError } from "./errors.ts";
import { excerpt } from "./excerpt.ts";

/** Every option of a function, so that none is forgotten; first the one that a stranger would give without its name. */
export type OptionNames<Options> = { readonly [name in keyof Required<Options>]: true };

/**
 * Give the options of a call back, after a look for what JavaScript lets pass: something else in their place, such as
 * the number of `sum(x, 1)`, and names that the function does not know, which would change nothing without a word.
 *
 * @param call the call without its options, such as `"gather(x, indices)"`, for the message.
 * @throws ArgumentError that shows the right call.
 */
export const checkOptions = <Options extends object>(
  call: string,
  options: Options,
  names: OptionNames<Options>,
): Options => {
  const fn = call.slice(0, call.indexOf("("));
  const known = Object.keys(names);
  const begin = call.endsWith("()") ? `${fn}(` : `${call.slice(0, -1)}, `;
  const rightCall = (value: string, option = known[0]): string => `write ${begin}{ ${option}: ${value} })`;
  if (options === undefined) throw new ArgumentError(`${fn}: its options are missing; ${rightCall("…")}`);
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new ArgumentError(
      `${fn}: ${excerpt(options)} was given where its options are due; ${rightCall(excerpt(options))}`,
    );
  if (ArrayBuffer.isView(options) || "dtype" in options)
    throw new ArgumentError(`${fn}: ${describe(options)} was given where its options are due; ${rightCall("…")}`);
  for (const name in options) {
    if (known.includes(name)) continue;
    const meant = known.find(
      (option) =>
        name.startsWith(option) || option.startsWith(name) || (/^ax[ei]s$/.test(name) && /^dims?$/.test(option)),
    );
    throw new ArgumentError(
      `${fn}: it has no option ${excerpt(name)}; its options are ${known.join(", ")}${meant === undefined ? "" : `, ${rightCall(excerpt((options as Record<string, unknown>)[name]), meant)}`}`,
    );
  }
  return options;
};

/** Which numbers an option takes. */
export interface NumberRange {
  readonly from: number;
  readonly below?: number;
  /** A value that is usual, for the message. */
  readonly usual: number;
}

/** @throws ArgumentError unless the value is a finite number of the range. */
export const checkNumber = (fn: string, name: string, value: number, { from, below, usual }: NumberRange): void => {
  if (typeof value === "number" && Number.isFinite(value) && value >= from && (below === undefined || value < below))
    return;
  const rule =
    from === -Infinity
      ? "a finite number"
      : below === undefined
        ? `a finite number from ${from}`
        : `a number from ${from} to below ${below}`;
  throw new ArgumentError(`${fn}: ${name} is ${describe(value)}, but it is ${rule}; use for example ${usual}`);
};
