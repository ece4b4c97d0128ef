import { median } from "@skein/measuring";
import type { RankSpans, Span } from "@skein/tensor-core";

/** Kinds of collectives that complete on a rank only after all ranks have taken part. */
const synchronizing: ReadonlySet<string | undefined> = new Set([
  "all-reduce",
  "all-gather",
  "reduce-scatter",
  "all-to-all",
]);

const hostOf = (process: string | undefined): string => process?.split(":")[0] ?? "";

/**
 * Returns the end times of one rank's synchronizing collectives that include all ranks, by key. The key of a collective
 * consists of the name and the number of earlier collectives with this name.
 */
const endsOf = (spans: readonly Span[], worldSize: number): ReadonlyMap<string, number> => {
  const occurrences = new Map<string, number>();
  const ends = new Map<string, number>();
  for (const { name, track, endSeconds, args } of spans) {
    if (track !== "collectives" || !synchronizing.has(args?.operator) || args?.ranks?.length !== worldSize) continue;
    const count = occurrences.get(name) ?? 0;
    occurrences.set(name, count + 1);
    ends.set(`${name} ${count}`, endSeconds);
  }
  return ends;
};

const shifted = (spans: readonly Span[], seconds: number): Span[] =>
  spans.map((span) => ({ ...span, startSeconds: span.startSeconds - seconds, endSeconds: span.endSeconds - seconds }));

/**
 * Converts the spans of all ranks to the clock of the first rank's host. Ranks of a host share a clock. Collectives
 * over all ranks end at nearly the same time on every rank. The clock of another host is therefore shifted by the
 * median difference between these end times. The remaining error is about the time of one message at most.
 */
export const alignClocks = (ranks: readonly RankSpans[]): readonly RankSpans[] => {
  const [first] = ranks;
  if (first === undefined) return ranks;
  const reference = endsOf(first.spans, ranks.length);
  return ranks.map((rank) => {
    if (hostOf(rank.process) === hostOf(first.process)) return rank;
    const differences = [...endsOf(rank.spans, ranks.length)].flatMap(([key, end]) => {
      const other = reference.get(key);
      return other === undefined ? [] : [end - other];
    });
    return differences.length === 0 ? rank : { ...rank, spans: shifted(rank.spans, median(differences)) };
  });
};
