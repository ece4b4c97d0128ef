import { ArgumentError } from "@skein/tensor-core";

/**
 * Parses the number given for an option.
 * @throws ArgumentError if the text is not an integer, or if the integer is less than `least`.
 */
export const countOf = (option: string, text: string, least: number): number => {
  const count = Number(text);
  if (!/^\d+$/.test(text.trim()) || !Number.isSafeInteger(count) || count < least)
    throw new ArgumentError(`--${option} ${text}: must be a whole number from ${least}; leave it out for the default`);
  return count;
};
