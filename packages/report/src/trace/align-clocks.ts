import { median } from "@skein/measuring";
import type { RankSpans, Span } from "@skein/tensor-core";

/** Kinds of collectives whose result is available on any rank only after all ranks have taken part. */
const synchronizing: ReadonlySet<string | undefined> = new Set([
  "all-reduce",
  "all-gather",
  "reduce-scatter",
  "all-to-all",
]);

const hostOf = (process: string | undefined): string => process?.split(":")[0] ?? "";

/**
 * Returns the end times of synchronizing collectives over all ranks, by name and by number of earlier occurrences of
 * the name.
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
 * Convert the spans of all ranks to one clock. Ranks of a host share a clock. The clock of another host is shifted by
 * the median difference between the ends of collectives over all ranks, which end nearly at the same time on every
 * rank. The remaining error is at most about the time of one message.
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
