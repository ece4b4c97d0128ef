import { closeSync, openSync, writeSync } from "node:fs";
import type { TraceFacts as ReportTraceFacts } from "@skein/report";
import { type RankSpans, type Span, type Track, tracks } from "@skein/tensor-core";

interface TraceEvent {
  readonly name: string;
  /** Phase of the event. X: a complete span; M: metadata; s, t, f: start, step and end of a flow. */
  readonly ph: "X" | "M" | "s" | "t" | "f";
  readonly pid: number;
  readonly [key: string]: unknown;
}

/** Properties of a run that its trace records. */
export interface TraceFacts extends ReportTraceFacts {
  /** Plan of the gradient exchange. Absent: no plan was made before the first step. */
  readonly plan?: object | undefined;
}

/**
 * A span with start and end in whole nanoseconds. Nesting is determined from the rounded times, because viewers compare
 * rounded times.
 */
interface RoundedSpan {
  readonly span: Span;
  readonly start: number;
  readonly end: number;
}

const nanoseconds = (seconds: number): number => Math.round(seconds * 1e9);
const microseconds = (count: number): number => count / 1000;

/**
 * Distributes the spans of one track over as few rows as the format allows. Two spans on a row do not overlap, or one
 * contains the other. Concurrent collectives are never nested, even if one contains the time of the other.
 *
 * Cost: O(n log n), and O(rows) per span.
 */
const rowsOf = (track: Track, spans: readonly Span[]): RoundedSpan[][] => {
  const placed = spans
    .map((span) => ({ span, start: nanoseconds(span.startSeconds), end: nanoseconds(span.endSeconds) }))
    .sort((a, b) => a.start - b.start || b.end - a.end);
  const mayNest = track !== "collectives";
  const rows: { readonly placed: RoundedSpan[]; readonly openEnds: number[] }[] = [];
  for (const one of placed) {
    const row = rows.find(({ openEnds }) => {
      while (openEnds.length > 0 && openEnds.at(-1)! <= one.start) openEnds.pop();
      return openEnds.length === 0 || (mayNest && one.end <= openEnds.at(-1)!);
    });
    if (row === undefined) rows.push({ placed: [one], openEnds: [one.end] });
    else {
      row.placed.push(one);
      row.openEnds.push(one.end);
    }
  }
  return rows.map((row) => row.placed);
};

const flowPhases = { begin: "s", through: "t", end: "f" } as const;

/** A span, with the process id and the thread id under which viewers draw the span. */
interface Row {
  readonly pid: number;
  readonly tid: number;
  readonly placed: RoundedSpan;
}

/**
 * Converts spans to events of Chrome's trace format, for Perfetto and chrome://tracing. Each rank is a process, and
 * each track is a thread, or several threads if spans of a track overlap, such as concurrent collectives. A flow
 * connects the start of a collective with the wait for its result.
 *
 * Names of processes and threads come first. Spans of all ranks follow in order of their start, so that a truncated
 * file contains all spans that began before its last span. Times are in microseconds, exact to the nanosecond. Times of
 * ranks in different processes are comparable as far as the clocks of their hosts agree.
 */
export function* traceEvents(ranks: readonly RankSpans[]): Generator<TraceEvent, void> {
  const flowNumbers = new Map<string, number>();
  const all: Row[] = [];
  // Viewers treat a thread with the number of its process as the main thread.
  let tid = ranks.reduce((most, { rank }) => Math.max(most, rank), 0);
  for (const { rank: pid, process, spans } of ranks) {
    yield { name: "process_name", ph: "M", pid, args: { name: `rank ${pid}` } };
    yield { name: "process_sort_index", ph: "M", pid, args: { sort_index: pid } };
    if (process !== undefined) yield { name: "process_labels", ph: "M", pid, args: { labels: process } };
    for (const [index, track] of tracks.entries()) {
      const rows = rowsOf(
        track,
        spans.filter((span) => span.track === track),
      );
      for (const [row, onRow] of rows.entries()) {
        tid++;
        yield { name: "thread_name", ph: "M", pid, tid, args: { name: row === 0 ? track : `${track} ${row + 1}` } };
        yield { name: "thread_sort_index", ph: "M", pid, tid, args: { sort_index: 1000 * index + row } };
        for (const placed of onRow) all.push({ pid, tid, placed });
      }
    }
  }
  // The sort is stable: among spans of a row that begin at the same time, the outer span remains first, as viewers
  // require.
  for (const { pid, tid: row, placed } of all.sort((a, b) => a.placed.start - b.placed.start)) {
    const { span, start, end } = placed;
    const { name, track, args, flow } = span;
    const at = { pid, tid: row, ts: microseconds(start) };
    yield { name, cat: track, ph: "X", ...at, dur: microseconds(end - start), ...(args && { args }) };
    if (flow === undefined) continue;
    const key = `${pid} ${flow.id}`;
    const id = flowNumbers.get(key) ?? flowNumbers.size + 1;
    flowNumbers.set(key, id);
    // Binds the flow to the enclosing span, not to the next span that begins.
    yield {
      name: "collective",
      cat: "flow",
      ph: flowPhases[flow.part],
      id,
      ...at,
      ...(flow.part !== "begin" && { bp: "e" }),
    };
  }
}

/**
 * Writes spans as a Chrome trace, one event per line, so that a trace of millions of spans never becomes a single
 * string in memory. `skein-profile report` reads the file line by line.
 */
export const writeChromeTrace = (path: string, ranks: readonly RankSpans[], facts: TraceFacts): void => {
  const file = openSync(path, "w");
  try {
    writeSync(
      file,
      `{"displayTimeUnit":"ms","otherData":${JSON.stringify({ format: "skein-trace", version: 1, ...facts })},"traceEvents":[`,
    );
    let separator = "\n";
    let buffered = "";
    for (const event of traceEvents(ranks)) {
      buffered += separator + JSON.stringify(event);
      separator = ",\n";
      if (buffered.length > 1 << 16) {
        writeSync(file, buffered);
        buffered = "";
      }
    }
    writeSync(file, `${buffered}\n]}\n`);
  } finally {
    closeSync(file);
  }
};
