import { readFileSync } from "node:fs";
import { expect } from "vitest";

export interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly cat: string;
  readonly id?: number;
  readonly bp?: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** Reads the events of a trace file, as a viewer does. */
export const readTrace = (path: string): TraceEvent[] =>
  (JSON.parse(readFileSync(path, "utf8")) as { traceEvents: TraceEvent[] }).traceEvents;

/** Returns the names of the rows of a process, from top to bottom as displayed. */
export const rowNames = (events: readonly TraceEvent[], pid: number): string[] => {
  const sortIndex = new Map(
    events
      .filter((event) => event.name === "thread_sort_index" && event.pid === pid)
      .map(({ tid, args }) => [tid, Number(args["sort_index"])]),
  );
  return events
    .filter((event) => event.name === "thread_name" && event.pid === pid)
    .sort((a, b) => sortIndex.get(a.tid)! - sortIndex.get(b.tid)!)
    .map(({ args }) => String(args["name"]));
};

/** Returns the spans of a process on one row. */
export const spansOn = (events: readonly TraceEvent[], pid: number, row: string | RegExp): TraceEvent[] => {
  const matches = (name: string): boolean => (typeof row === "string" ? name === row : row.test(name));
  const tids = new Set(
    events
      .filter((event) => event.name === "thread_name" && event.pid === pid && matches(String(event.args["name"])))
      .map(({ tid }) => tid),
  );
  return events.filter((event) => event.ph === "X" && event.pid === pid && tids.has(event.tid));
};

const nanoseconds = (microseconds: number): number => Math.round(1000 * microseconds);
const rowOf = ({ pid, tid }: TraceEvent): string => `${pid} ${tid}`;

const byKey = <T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> => Map.groupBy(items, key);

const namingFaults = (events: readonly TraceEvent[]): string[] => {
  const named = (what: string, key: (event: TraceEvent) => string): string[] => {
    const known = new Set(events.filter(({ ph, name }) => ph === "M" && name === what).map(key));
    return [...new Set(events.filter(({ ph }) => ph !== "M").map(key))]
      .filter((place) => !known.has(place))
      .map((place) => `${place} has no ${what}`);
  };
  const twice = [
    ...byKey(
      events.filter(({ name }) => name === "thread_name"),
      ({ pid, args }) => `${pid} ${String(args["name"])}`,
    ),
  ]
    .filter(([, same]) => same.length > 1)
    .map(([name]) => `two rows are called ${name}`);
  return [
    ...["process_name", "process_sort_index"].flatMap((what) => named(what, ({ pid }) => String(pid))),
    ...["thread_name", "thread_sort_index"].flatMap((what) => named(what, rowOf)),
    ...twice,
  ];
};

/**
 * Returns the nesting faults of a row. A span that begins while another span is open must end before that span; a
 * viewer drops spans that do not.
 */
const nestingFaults = (row: string, spans: readonly TraceEvent[]): string[] => {
  const faults: string[] = [];
  const open: { readonly name: string; readonly end: number }[] = [];
  // The sort is stable, as in a viewer: among spans that begin at the same time, the first span in the file is the
  // outer one.
  for (const { name, ts, dur } of spans.toSorted((a, b) => nanoseconds(a.ts) - nanoseconds(b.ts))) {
    const [start, end] = [nanoseconds(ts), nanoseconds(ts) + nanoseconds(dur)];
    while (open.length > 0 && open.at(-1)!.end <= start) open.pop();
    const outer = open.at(-1);
    if (outer !== undefined && end > outer.end)
      faults.push(`row ${row}: ${name} ends ${end - outer.end} ns after ${outer.name}, in which it begins`);
    open.push({ name, end });
  }
  return faults;
};

const flowFaults = (events: readonly TraceEvent[]): string[] => {
  const spans = byKey(
    events.filter(({ ph }) => ph === "X"),
    rowOf,
  );
  const flows = byKey(
    events.filter(({ ph }) => "stf".includes(ph)),
    ({ id }) => String(id),
  );
  return [...flows].flatMap(([id, parts]) => {
    const count = (ph: string): number => parts.filter((part) => part.ph === ph).length;
    const faults: string[] = [];
    if (count("s") !== 1 || count("f") !== 1) faults.push(`flow ${id} has ${count("s")} begins and ${count("f")} ends`);
    const rank = (ph: string): number => "stf".indexOf(ph);
    const inTime = parts
      .toSorted((a, b) => nanoseconds(a.ts) - nanoseconds(b.ts) || rank(a.ph) - rank(b.ph))
      .map(({ ph }) => ph);
    if (!/^st*f$/.test(inTime.join(""))) faults.push(`flow ${id} goes ${inTime.join(" ")}`);
    for (const part of parts) {
      const at = nanoseconds(part.ts);
      const around = (spans.get(rowOf(part)) ?? []).some(
        ({ ts, dur }) => nanoseconds(ts) <= at && at <= nanoseconds(ts) + nanoseconds(dur),
      );
      if (!around) faults.push(`flow ${id}: no span is open where its ${part.ph} lies`);
      if (part.ph !== "s" && part.bp !== "e")
        faults.push(`flow ${id}: its ${part.ph} binds to the next span, not to the one around it`);
    }
    return faults;
  });
};

/**
 * Returns the violations of Chrome's trace format that a viewer would find when it replays the events. Empty for a
 * valid trace.
 */
export const traceFaults = (events: readonly TraceEvent[]): string[] => {
  const faults = events.flatMap(({ name, ph, pid, tid, ts, dur }) => {
    const what = `${ph} ${name} of ${pid} ${tid}`;
    if (!["X", "M", "s", "t", "f"].includes(ph)) return [`${what}: a phase that is not ours`];
    if (!Number.isInteger(pid)) return [`${what}: no process`];
    if (ph === "M") return [];
    if (!Number.isInteger(tid) || tid === pid) return [`${what}: a row's number is whole, and not its process's`];
    if (!Number.isFinite(ts)) return [`${what}: begins at ${ts}`];
    return ph === "X" && !(dur >= 0) ? [`${what}: lasts ${dur} µs`] : [];
  });
  const rows = byKey(
    events.filter(({ ph }) => ph === "X"),
    rowOf,
  );
  return [
    ...faults,
    ...namingFaults(events),
    ...[...rows].flatMap(([row, spans]) => nestingFaults(row, spans)),
    ...flowFaults(events),
  ];
};

/**
 * Checks the trace of a run against the format, and against the work of each rank: all rows exist, and each collective
 * has a start and a wait.
 */
export const expectSoundTrace = (path: string, ranks: number): TraceEvent[] => {
  const events = readTrace(path);
  expect(traceFaults(events)).toEqual([]);
  const processes = events.filter(({ name }) => name === "process_name").map(({ pid, args }) => [pid, args["name"]]);
  expect(processes).toEqual(Array.from({ length: ranks }, (_, rank) => [rank, `rank ${rank}`]));
  for (let rank = 0; rank < ranks; rank++) {
    const rows = rowNames(events, rank);
    expect(rows.filter((row) => !/ \d+$/.test(row))).toEqual([
      "steps",
      "data",
      "host",
      "compute",
      "collectives",
      "waiting",
    ]);
    const names = (row: string | RegExp): string[] => spansOn(events, rank, row).map(({ name }) => name);
    const collectives = names(/^collectives/).toSorted();
    expect(collectives.length).toBeGreaterThan(0);
    expect(names(/^waiting/).toSorted()).toEqual(collectives.map((name) => `wait ${name}`));
    expect(
      names(/^host/)
        .filter((name) => name.startsWith("start "))
        .toSorted(),
    ).toEqual(collectives.map((name) => `start ${name}`));
    expect(names(/^host/)).toContain("compile train step");
    for (const { args } of spansOn(events, rank, /^collectives/)) {
      expect(args).toMatchObject({
        axis: "data",
        algorithm: expect.stringMatching(/\w/) as string,
        bytes: expect.any(Number) as number,
      });
      expect(args["ranks"]).toEqual(Array.from({ length: ranks }, (_, member) => member));
    }
  }
  return events;
};
