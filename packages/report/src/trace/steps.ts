import type { Phase, RankSpans, Span } from "@skein/tensor-core";

/** What one rank did in one step. */
export interface RankStep {
  readonly rank: number;
  readonly number: number;
  /** Of the whole step: its begin, its end, what it waited. */
  readonly whole: Span;
  /** Those that begin within it, in order of their begin. */
  readonly spans: readonly Span[];
}

const stepNumber = ({ name }: Span): number => Number(/^step (\d+)$/.exec(name)?.[1]);

/**
 * Cut the spans of a rank into steps. Spans between two steps, such as a checkpoint, belong to none; steps of a trace
 * that was cut off are left out.
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

/** One step of all ranks. */
export type WorldStep = readonly RankStep[];

/** Steps that every rank has made, in order, ranks in order. */
export const worldSteps = (ranks: readonly RankSpans[]): readonly WorldStep[] => {
  const byNumber = Map.groupBy(ranks.flatMap(stepsOf), ({ number }) => number);
  return [...byNumber.entries()]
    .filter(([, steps]) => steps.length === ranks.length)
    .sort(([a], [b]) => a - b)
    .map(([, steps]) => steps);
};

export const secondsOf = ({ startSeconds, endSeconds }: Pick<Span, "startSeconds" | "endSeconds">): number =>
  endSeconds - startSeconds;

/** All spans of one name. */
export interface SpanSum {
  readonly seconds: number;
  readonly calls: number;
  /** Of the first of them. */
  readonly phase: Phase | undefined;
}

/** How long a step took: of the rank that took longest. */
export const worldSeconds = (step: WorldStep): number => Math.max(...step.map(({ whole }) => secondsOf(whole)));

/** Spans of ranks from a moment on: it is their 0. */
export const spansFrom = (ranks: readonly RankSpans[], begin: number): RankSpans[] =>
  ranks.map((rank) => ({
    ...rank,
    spans: rank.spans.map((span) => ({
      ...span,
      startSeconds: span.startSeconds - begin,
      endSeconds: span.endSeconds - begin,
    })),
  }));

/** The spans of one step, from its earliest begin on. */
export const timelineOf = (step: WorldStep): RankSpans[] =>
  spansFrom(
    step.map(({ rank, whole, spans }) => ({ rank, spans: [whole, ...spans] })),
    Math.min(...step.map(({ whole }) => whole.startSeconds)),
  );

/** What spans of one track take, by their names. */
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

/** What ranks spent on spans of one track, by rank, step and name: spans are gone through once. */
export const secondsByRank = (
  steps: readonly WorldStep[],
  track: Span["track"],
): readonly (readonly ReturnType<typeof sumsByName>[])[] =>
  Array.from({ length: steps[0]?.length ?? 0 }, (_, rank) => steps.map((step) => sumsByName(step[rank]!.spans, track)));
