import {
  alignClocks,
  parseTrace,
  shiftSpans,
  sumsByName,
  timelineOf,
  traceFacts,
  worldSeconds,
  type WorldStep,
  worldSteps,
} from "@skein/report";
import { type RankSpans, type Track, tracks } from "@skein/tensor-core";

/** A trace in the form that a page shows. */
export interface TraceView {
  /** Ranks with aligned clocks; times count from the first span. */
  readonly ranks: readonly RankSpans[];
  /** Steps that all ranks have completed. */
  readonly steps: readonly WorldStep[];
  readonly numSpans: number;
  readonly isCut: boolean;
}

/** A part of a trace that is drawn at once. */
export interface TraceWindow {
  readonly key: string;
  readonly title: string;
  /** Spans of the part; times count from its start. */
  readonly ranks: () => readonly RankSpans[];
  /** Whether it has several steps, which then get their own track. */
  readonly hasSteps: boolean;
}

/** Maximum number of spans that can be drawn responsively. */
export const maxSpans = 40_000;

/** Iterate over lines without an array of all lines, because a trace may have a million. */
function* linesOf(text: string): Generator<string, void> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    yield text.slice(from, end < 0 ? text.length : end);
    from = end < 0 ? text.length : end + 1;
  }
}

/**
 * Read a Skein trace.
 *
 * @param name of its file, for errors.
 * @throws ArgumentError in one line for another format.
 */
export const readTraceText = (text: string, name: string): TraceView => {
  const { ranks, cut } = parseTrace(linesOf(text), traceFacts, name);
  const aligned = alignClocks(ranks);
  const begin = aligned.reduce(
    (least, { spans }) => spans.reduce((one, { startSeconds }) => Math.min(one, startSeconds), least),
    Infinity,
  );
  const own = shiftSpans(aligned, Number.isFinite(begin) ? begin : 0);
  return {
    ranks: own,
    steps: worldSteps(own),
    numSpans: own.reduce((sum, { spans }) => sum + spans.length, 0),
    isCut: cut !== undefined,
  };
};

const numberOf = (step: WorldStep): number => step[0]!.number;

/** The last spans of all ranks, for a trace without steps that has too many spans. */
const lastSpans = (ranks: readonly RankSpans[]): RankSpans[] => {
  const begins = ranks.flatMap(({ spans }) => spans.map(({ startSeconds }) => startSeconds)).sort((a, b) => b - a);
  const from = begins[maxSpans - 1]!;
  const left = ranks.map((rank) => ({
    ...rank,
    spans: rank.spans.filter(({ startSeconds }) => startSeconds >= from),
  }));
  return shiftSpans(left, from);
};

/**
 * Parts that can be shown: the whole trace if it is short enough, and each of its steps. The first part is shown
 * initially.
 */
export const windowsOf = (
  { ranks, steps, numSpans }: TraceView,
  text: (seconds: number) => string,
): readonly TraceWindow[] => {
  const whole: TraceWindow[] =
    numSpans <= maxSpans
      ? [{ key: "all", title: "whole trace", ranks: () => ranks, hasSteps: true }]
      : steps.length === 0
        ? [{ key: "last", title: `last ${maxSpans} spans`, ranks: () => lastSpans(ranks), hasSteps: true }]
        : [];
  const each = steps.map((step) => ({
    key: String(numberOf(step)),
    title: `step ${numberOf(step)}, ${text(worldSeconds(step))}`,
    ranks: () => timelineOf(step),
    hasSteps: false,
  }));
  return [...whole, ...each.toReversed()];
};

/** All spans of one name on a track of a rank. */
export interface SpanRow {
  readonly rank: number;
  readonly track: Track;
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
}

/**
 * A timeline as a table, for users who cannot see it: the longest spans of each rank and track.
 *
 * @param most number of rows per track; the remaining names share one row, whose name gives their number.
 */
export const rowsOfSpans = (ranks: readonly RankSpans[], most: number): SpanRow[] =>
  ranks.flatMap(({ rank, spans }) =>
    tracks.flatMap((track) => {
      const rows = [...sumsByName(spans, track)]
        .map(([name, { calls, seconds }]) => ({ rank, track, name, calls, seconds }))
        .sort((a, b) => b.seconds - a.seconds);
      const left = rows.slice(most);
      if (left.length === 0) return rows;
      const total = { calls: 0, seconds: 0 };
      for (const { calls, seconds } of left) {
        total.calls += calls;
        total.seconds += seconds;
      }
      return [...rows.slice(0, most), { rank, track, name: `${left.length} others`, ...total }];
    }),
  );
