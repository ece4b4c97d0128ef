import { ArgumentError } from "./errors.ts";
import { excerpt } from "./excerpt.ts";

/** Every option of a function, so that none is forgotten; first the one that a stranger would give without its name. */
export type OptionNames<Options> = { readonly [name in keyof Required<Options>]: true };

/**
 * Give the options of a call back, after a look for what JavaScript lets pass: something else in their place, such as the number of `sum(x, 1)`,
 * and names that the function does not know, which would change nothing without a word.
 *
 * @param call the call without its options, such as `"gather(x, indices)"`, for the message.
 * @throws ArgumentError that shows the right call.
 */
export const checkOptions = <Options extends object>(call: string, options: Options, names: OptionNames<Options>): Options => {
  const fn = call.slice(0, call.indexOf("("));
  const known = Object.keys(names);
  const rightCall = (value: string): string => `write ${call.slice(0, -1)}, { ${known[0]}: ${value} })`;
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new ArgumentError(`${fn}: ${excerpt(options)} was given where its options are due; ${rightCall(excerpt(options))}`);
  for (const name in options) {
    if (!known.includes(name))
      throw new ArgumentError(
        `${fn}: it has no option ${excerpt(name)}, only ${known.join(", ")}; ${rightCall(excerpt((options as Record<string, unknown>)[name]))}`,
      );
  }
  return options;
};
