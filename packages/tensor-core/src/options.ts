import { describe } from "./describe.ts";
import { ArgumentError } from "./errors.ts";
import { excerpt } from "./excerpt.ts";

/**
 * Names of all options of a function; the type rejects an incomplete list. The first name must be the option whose
 * value callers most often pass without an options object, because error messages suggest the first name.
 */
export type OptionNames<Options> = { readonly [name in keyof Required<Options>]: true };

/**
 * Checks and returns the options of a call. Detects two mistakes that JavaScript accepts silently: a value in place of
 * the options object, such as the number in `sum(x, 1)`, and unknown option names.
 *
 * @param call Text of the call without options, such as `"gather(x, indices)"`, for the message.
 * @throws ArgumentError that shows the correct call.
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
      `${fn}: got ${excerpt(options)} instead of an options object; ${rightCall(excerpt(options))}`,
    );
  if (ArrayBuffer.isView(options) || "dtype" in options)
    throw new ArgumentError(`${fn}: got ${describe(options)} instead of an options object; ${rightCall("…")}`);
  for (const name in options) {
    if (known.includes(name)) continue;
    const meant = known.find(
      (option) =>
        name.startsWith(option) || option.startsWith(name) || (/^ax[ei]s$/.test(name) && /^dims?$/.test(option)),
    );
    throw new ArgumentError(
      `${fn}: unknown option ${excerpt(name)}; its options are ${known.join(", ")}${meant === undefined ? "" : `, ${rightCall(excerpt((options as Record<string, unknown>)[name]), meant)}`}`,
    );
  }
  return options;
};

/** Valid range of a numeric option: at least `from`, and less than `below` if given. */
export interface NumberRange {
  readonly from: number;
  readonly below?: number;
  /** Typical value that the error message suggests. */
  readonly usual: number;
}

/** Throws ArgumentError unless the value of a numeric option is a finite number in the range. */
export const checkNumber = (fn: string, name: string, value: number, { from, below, usual }: NumberRange): void => {
  if (typeof value === "number" && Number.isFinite(value) && value >= from && (below === undefined || value < below))
    return;
  const rule =
    from === -Infinity
      ? "a finite number"
      : below === undefined
        ? `a finite number from ${from}`
        : `a number from ${from} to below ${below}`;
  throw new ArgumentError(`${fn}: ${name} is ${describe(value)}, but it must be ${rule}; use for example ${usual}`);
};
