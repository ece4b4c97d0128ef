/**
 * Edit distance (insert, delete, replace, swap of neighbors) between two words. Source: Damerau 1964, restricted form.
 *
 * Implemented here because libraries count a swap as two edits (fastest-levenshtein 1.0.16): of 1119 misspellings made
 * by one swap in a word of the job file, 164 would get no suggestion, such as "rnaks". Also, this package has no
 * dependency.
 */
export const editDistance = (a: string, b: string): number => {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(change, last[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
};

const allowedEdits = (candidate: string): number => Math.max(1, Math.floor(candidate.length / 3));

/**
 * Returns the known word that the user probably meant: the word with the smallest edit distance, if the distance is at
 * most a third of that word's length, or 1. Undefined if no known word is that similar. Cost: bounded by `known`,
 * independent of the length of `word`.
 *
 * @example
 * ```ts
 * console.log(didYouMean("adamv", ["adam", "adamw", "sgd"])); // adam
 * ```
 */
export const didYouMean = (word: string, known: readonly string[]): string | undefined => {
  const ranked = known
    .filter((candidate) => Math.abs(candidate.length - word.length) <= allowedEdits(candidate))
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= allowedEdits(best.candidate) ? best.candidate : undefined;
};
