import { ArgumentError } from "@skein/tensor-core";

/** The number that an option was given. @throws ArgumentError for what is none, or less than `least`. */
export const countOf = (option: string, text: string, least: number): number => {
  const count = Number(text);
  if (!/^\d+$/.test(text.trim()) || !Number.isSafeInteger(count) || count < least)
    throw new ArgumentError(`--${option} ${text}: must be a whole number from ${least}; leave it out for the default`);
  return count;
};
