/** Name ranks in a message, runs of three and more shortened: "rank 3", "ranks 0, 2, 5–9". */
export const formatRanks = (ranks: readonly number[]): string => {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const runs: [number, number][] = [];
  for (const rank of sorted) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === rank - 1) last[1] = rank;
    else runs.push([rank, rank]);
  }
  const parts = runs.map(([first, last]) => (first === last ? `${first}` : `${first}${last === first + 1 ? ", " : "–"}${last}`));
  return `${sorted.length === 1 ? "rank" : "ranks"} ${parts.join(", ")}`;
};
