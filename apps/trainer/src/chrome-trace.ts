import { closeSync, openSync, writeSync } from "node:fs";
import type { Span } from "@skein/tensor-core";

interface TraceEvent {
  readonly name: string;
  readonly ph: "X" | "M";
  readonly pid: number;
  readonly tid: number;
  readonly [key: string]: unknown;
}

/** Spans as Chrome trace events: a process per rank, a thread per stream, times in microseconds. Opens in Perfetto and chrome://tracing. */
export function* traceEvents(spans: readonly Span[]): Generator<TraceEvent, void> {
  const threads = new Map<string, number>();
  const processes = new Set<number>();
  for (const span of spans) {
    const pid = span.rank;
    if (!processes.has(pid)) {
      processes.add(pid);
      yield { name: "process_name", ph: "M", pid, tid: 0, args: { name: `rank ${pid}` } };
    }
    const key = `${pid} ${span.stream}`;
    let tid = threads.get(key);
    if (tid === undefined) {
      tid = threads.size + 1;
      threads.set(key, tid);
      yield { name: "thread_name", ph: "M", pid, tid, args: { name: span.stream } };
    }
    yield {
      name: span.name,
      cat: span.category,
      ph: "X",
      pid,
      tid,
      ts: span.startSeconds * 1e6,
      dur: span.durationSeconds * 1e6,
      ...(span.args && { args: span.args }),
    };
  }
}

/** Write spans as a Chrome trace, event by event: a trace of millions of spans never stands in memory as one string. */
export const writeChromeTrace = (path: string, spans: readonly Span[]): void => {
  const file = openSync(path, "w");
  try {
    writeSync(file, '{"displayTimeUnit":"ms","traceEvents":[');
    let separator = "\n";
    let buffered = "";
    for (const event of traceEvents(spans)) {
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
