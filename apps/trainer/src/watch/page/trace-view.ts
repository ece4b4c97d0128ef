import {
  alignClocks,
  parseTrace,
  spansFrom,
  sumsByName,
  timelineOf,
  traceFacts,
  worldSeconds,
  type WorldStep,
  worldSteps,
} from "@skein/report";
import { type RankSpans, type Track, tracks } from "@skein/tensor-core";

/** A trace as a page shows it. */
export interface TraceView {
  /** By one clock, from the first span on. */
  readonly ranks: readonly RankSpans[];
  /** Those that all ranks have made to their end. */
  readonly steps: readonly WorldStep[];
  readonly numSpans: number;
  readonly isCut: boolean;
}

/** A stretch of a trace that is drawn at once. */
export interface TraceWindow {
  readonly key: string;
  readonly title: string;
  /** From the begin of the stretch on. */
  readonly ranks: () => readonly RankSpans[];
  /** It has more than one step, so that steps are told apart by a track of their own. */
  readonly hasSteps: boolean;
}

/** More spans make a drawing that follows no hand. */
export const mostSpans = 40_000;

/** Without an array of all of them: a trace may have a million. */
function* linesOf(text: string): Generator<string, void> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    yield text.slice(from, end < 0 ? text.length : end);
    from = end < 0 ? text.length : end + 1;
  }
}

/**
 * Read a trace of ours.
 *
 * @param name of its file, for errors.
 * @throws ArgumentError in one line for what is none.
 */
export const readTraceText = (text: string, name: string): TraceView => {
  const { ranks, cut } = parseTrace(linesOf(text), traceFacts, name);
  const aligned = alignClocks(ranks);
  const begin = aligned.reduce(
    (least, { spans }) => spans.reduce((one, { startSeconds }) => Math.min(one, startSeconds), least),
    Infinity,
  );
  const own = spansFrom(aligned, Number.isFinite(begin) ? begin : 0);
  return {
    ranks: own,
    steps: worldSteps(own),
    numSpans: own.reduce((sum, { spans }) => sum + spans.length, 0),
    isCut: cut !== undefined,
  };
};

const numberOf = (step: WorldStep): number => step[0]!.number;

/** Of a trace without steps that is too long: what begins last, on all ranks. */
const lastSpans = (ranks: readonly RankSpans[]): RankSpans[] => {
  const begins = ranks.flatMap(({ spans }) => spans.map(({ startSeconds }) => startSeconds)).sort((a, b) => b - a);
  const from = begins[mostSpans - 1]!;
  const left = ranks.map((rank) => ({
    ...rank,
    spans: rank.spans.filter(({ startSeconds }) => startSeconds >= from),
  }));
  return spansFrom(left, from);
};

/** What can be looked at: all of a trace that is short enough, and each of its steps; the first is shown at first. */
export const windowsOf = (
  { ranks, steps, numSpans }: TraceView,
  text: (seconds: number) => string,
): readonly TraceWindow[] => {
  const whole: TraceWindow[] =
    numSpans <= mostSpans
      ? [{ key: "all", title: "all of it", ranks: () => ranks, hasSteps: true }]
      : steps.length === 0
        ? [{ key: "last", title: `its last ${mostSpans} spans`, ranks: () => lastSpans(ranks), hasSteps: true }]
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
 * A timeline in numbers, for who cannot see it: of each rank and track what took longest.
 *
 * @param most rows of a track; of what is left there is one row, whose name tells how many they were.
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
