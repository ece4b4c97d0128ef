import { ArgumentError } from "@skein/tensor-core";

/** Maximum number of ranks. A larger number is treated as a typing error. */
const most = 2 ** 20;

const refuse = (text: string): never => {
  throw new ArgumentError(
    `--ranks ${text}: must be a whole number from 1, several with commas (2,4,8), or doublings from one to another (2..64)`,
  );
};

/**
 * Parses the rank counts of an option: `8`, `2,4,12`, or `2..64` for the powers of two from 2 to 64.
 *
 * @throws ArgumentError if the text has another format.
 */
export const rankList = (text: string): number[] => {
  const count = (word: string): number => {
    const number = Number(word);
    return /^\d+$/.test(word.trim()) && number >= 1 && number <= most ? number : refuse(text);
  };
  const range = /^([^.,]+)\.\.([^.,]+)$/.exec(text.trim());
  if (range === null) return [...new Set(text.split(",").map(count))].sort((a, b) => a - b);
  const [from, to] = [count(range[1]!), count(range[2]!)];
  if (to < from) refuse(text);
  const counts: number[] = [];
  for (let ranks = from; ranks <= to; ranks *= 2) counts.push(ranks);
  return counts;
};
