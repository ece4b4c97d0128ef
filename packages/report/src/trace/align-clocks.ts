import { median } from "@skein/measuring";
import type { RankSpans, Span } from "@skein/tensor-core";

/** Kinds whose result no rank has before all have taken part. */
const joint: ReadonlySet<string | undefined> = new Set(["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]);

const hostOf = (process: string | undefined): string => process?.split(":")[0] ?? "";

/** When collectives that all ranks take part in were done, by name and how often that name came before. */
const endsOf = (spans: readonly Span[], worldSize: number): ReadonlyMap<string, number> => {
  const seen = new Map<string, number>();
  const ends = new Map<string, number>();
  for (const { name, track, endSeconds, args } of spans) {
    if (track !== "collectives" || !joint.has(args?.operator) || args?.ranks?.length !== worldSize) continue;
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    ends.set(`${name} ${count}`, endSeconds);
  }
  return ends;
};

const shifted = (spans: readonly Span[], seconds: number): Span[] =>
  spans.map((span) => ({ ...span, startSeconds: span.startSeconds - seconds, endSeconds: span.endSeconds - seconds }));

/**
 * Lay the spans of ranks on one clock. Ranks of one host share theirs; that of another host is moved by the median of
 * the differences between the ends of the collectives that all ranks took part in, which end everywhere at nearly the
 * same time. What is left is within the time of a message.
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
