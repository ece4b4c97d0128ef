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

/** A trace as displayed on a page. */
export interface TraceView {
  /** Spans of the ranks, with aligned clocks. Times are relative to the first span. */
  readonly ranks: readonly RankSpans[];
  /** Steps that all ranks have completed. */
  readonly steps: readonly WorldStep[];
  readonly numSpans: number;
  readonly isCut: boolean;
}

/** A part of a trace that is drawn as one figure. */
export interface TraceWindow {
  readonly key: string;
  readonly title: string;
  /** Spans of this part of the trace. Times are relative to the start of the part. */
  readonly ranks: () => readonly RankSpans[];
  /** Whether the part contains several steps, which are then drawn on a separate track. */
  readonly hasSteps: boolean;
}

/** Maximum number of spans that can be drawn without noticeable delay. */
export const maxSpans = 40_000;

/** Iterates over lines without creating an array, because a trace may have a million lines. */
function* linesOf(text: string): Generator<string, void> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    yield text.slice(from, end < 0 ? text.length : end);
    from = end < 0 ? text.length : end + 1;
  }
}

/**
 * Reads a Skein trace.
 *
 * @param name File name, for error messages.
 * @throws ArgumentError with a one-line message, if the text has another format.
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

/** Returns the last spans of all ranks, for a trace without steps that has too many spans. */
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
 * Returns the parts of a trace that can be displayed: the complete trace if it is short enough, and each of its steps.
 * The first part is displayed initially.
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

/** Number and total duration of all spans with the same name, on one track of one rank. */
export interface SpanRow {
  readonly rank: number;
  readonly track: Track;
  readonly name: string;
  readonly calls: number;
  readonly seconds: number;
}

/**
 * Returns a timeline as table rows, for users who cannot see the figure: total time by span name for each rank and
 * track, longest first.
 *
 * @param most Maximum number of rows per track. The remaining names share one more row, whose name contains their
 * number.
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
