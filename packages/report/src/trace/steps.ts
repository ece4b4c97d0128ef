import type { Phase, RankSpans, Span } from "@skein/tensor-core";

/** All spans of one rank in a step. */
export interface RankStep {
  readonly rank: number;
  readonly number: number;
  /** Span of the whole step, with its start, end and exposed communication. */
  readonly whole: Span;
  /** Spans that begin within the step, in the order of start times. */
  readonly spans: readonly Span[];
}

const stepNumber = ({ name }: Span): number => Number(/^step (\d+)$/.exec(name)?.[1]);

/**
 * Splits the spans of a rank into steps. Spans between two steps, such as a checkpoint, belong to no step. Incomplete
 * steps of a trace that was cut off are omitted.
 */
export const stepsOf = ({ rank, spans }: RankSpans): readonly RankStep[] => {
  const ordered = spans.toSorted((a, b) => a.startSeconds - b.startSeconds);
  const wholes = ordered.filter(({ track }) => track === "steps");
  const rest = ordered.filter(({ track }) => track !== "steps");
  let next = 0;
  return wholes.map((whole) => {
    while (next < rest.length && rest[next]!.startSeconds < whole.startSeconds) next++;
    const begin = next;
    while (next < rest.length && rest[next]!.startSeconds < whole.endSeconds) next++;
    return { rank, number: stepNumber(whole), whole, spans: rest.slice(begin, next) };
  });
};

/** One step of all ranks, as a list in rank order. */
export type WorldStep = readonly RankStep[];

/** Returns the steps that every rank completed, in step order; the ranks of each step are in rank order. */
export const worldSteps = (ranks: readonly RankSpans[]): readonly WorldStep[] => {
  const byNumber = Map.groupBy(ranks.flatMap(stepsOf), ({ number }) => number);
  return [...byNumber.entries()]
    .filter(([, steps]) => steps.length === ranks.length)
    .sort(([a], [b]) => a - b)
    .map(([, steps]) => steps);
};

export const secondsOf = ({ startSeconds, endSeconds }: Pick<Span, "startSeconds" | "endSeconds">): number =>
  endSeconds - startSeconds;

/** Total seconds and number of calls of all spans with the same name. */
export interface SpanSum {
  readonly seconds: number;
  readonly calls: number;
  /** Phase of the first span with this name. */
  readonly phase: Phase | undefined;
}

/** Returns the duration of a step on its slowest rank, in seconds. */
export const worldSeconds = (step: WorldStep): number => Math.max(...step.map(({ whole }) => secondsOf(whole)));

/** Returns the spans of ranks with times relative to `begin`. */
export const shiftSpans = (ranks: readonly RankSpans[], begin: number): RankSpans[] =>
  ranks.map((rank) => ({
    ...rank,
    spans: rank.spans.map((span) => ({
      ...span,
      startSeconds: span.startSeconds - begin,
      endSeconds: span.endSeconds - begin,
    })),
  }));

/** Returns the spans of one step, with times relative to its earliest start on any rank. */
export const timelineOf = (step: WorldStep): RankSpans[] =>
  shiftSpans(
    step.map(({ rank, whole, spans }) => ({ rank, spans: [whole, ...spans] })),
    Math.min(...step.map(({ whole }) => whole.startSeconds)),
  );

/** Sums the durations of the spans on one track, by name. */
export const sumsByName = (spans: readonly Span[], track: Span["track"]): ReadonlyMap<string, SpanSum> => {
  const sums = new Map<string, { seconds: number; calls: number; phase: Phase | undefined }>();
  for (const span of spans) {
    if (span.track !== track) continue;
    const sum = sums.get(span.name) ?? { seconds: 0, calls: 0, phase: span.args?.phase };
    sum.seconds += secondsOf(span);
    sum.calls++;
    sums.set(span.name, sum);
  }
  return sums;
};

/** Sums the durations of the spans on one track by name, for each rank and step: result[rank][step]. */
export const secondsByRank = (
  steps: readonly WorldStep[],
  track: Span["track"],
): readonly (readonly ReturnType<typeof sumsByName>[])[] =>
  Array.from({ length: steps[0]?.length ?? 0 }, (_, rank) => steps.map((step) => sumsByName(step[rank]!.spans, track)));
