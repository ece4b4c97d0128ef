import type { RankSpans, Span } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import type { z } from "zod";
import { flowOf, type SpanEvent, spanOf, traceEvent, type TraceFacts } from "./trace-event.ts";
import { traceError } from "./trace-error.ts";

/** Extent of a trace that was cut off: the time up to which it is complete, and its incomplete steps. */
export interface TraceCut {
  /** Time up to which all spans were read, in seconds on the trace's clock. */
  readonly reachedSeconds: number;
  /** Names of steps that at least one rank started but did not complete. */
  readonly incompleteSteps: readonly string[];
}

/** A parsed trace. */
export interface ReadTrace<Facts extends TraceFacts = TraceFacts> {
  readonly facts: Facts;
  /** Ranks in order, with their spans by start time. Incomplete steps are omitted, but their kernels are included. */
  readonly ranks: readonly RankSpans[];
  readonly events: number;
  /** Extent of a trace that was cut off. Absent if the trace is complete. */
  readonly cut?: TraceCut | undefined;
}

const head = '{"displayTimeUnit":"ms","otherData":';
const afterFacts = ',"traceEvents":[';

/**
 * Parses the first line of a trace written by skein-train or skein-profile.
 *
 * @returns the run metadata (`TraceFacts`) in the line, not validated; undefined if another program wrote the line, or
 * if the line is incomplete.
 */
const factsIn = (line: string): unknown => {
  if (!line.startsWith(head) || !line.endsWith(afterFacts)) return undefined;
  try {
    return JSON.parse(line.slice(head.length, -afterFacts.length));
  } catch {
    return undefined;
  }
};

/** Returns whether a line is the incomplete first line of a trace written by Skein. */
const isHeadCut = (line: string): boolean => line !== "" && (head.startsWith(line) || line.startsWith(head));

/** Returns a short description of a validation error. */
const problemOf = (error: z.ZodError): string => {
  const { path, message } = error.issues[0]!;
  return `${path.map(String).join(".")} ${message.replace(/^Invalid input: /, "")}`.trim();
};

/** Collects the spans of all ranks from events, in the order of the events. */
class SpanCollector {
  events = 0;
  private readonly ranks = new Map<number, { process: string | undefined; readonly spans: Span[] }>();
  private before: SpanEvent | undefined;
  /** Start time of the latest span so far. Meaningful only if spans are in the order of start times. */
  private reached = -Infinity;
  private ordered = true;
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  add(event: unknown): void {
    const parsed = traceEvent.safeParse(event);
    if (!parsed.success)
      throw traceError(
        this.path,
        `event ${this.events + 1}, ${excerpt(event)}, is not one that skein-train or skein-profile writes (${problemOf(parsed.error)})`,
      );
    this.events++;
    const one = parsed.data;
    const rank = this.ranks.get(one.pid) ?? { process: undefined, spans: [] };
    this.ranks.set(one.pid, rank);
    if (one.ph === "M") {
      if (one.name === "process_labels") rank.process = one.args.labels;
    } else if (one.ph === "X") {
      this.before = one;
      const span = spanOf(one);
      rank.spans.push(span);
      this.ordered &&= span.startSeconds >= this.reached;
      this.reached = Math.max(this.reached, span.startSeconds);
    } else {
      const { before } = this;
      if (before?.pid !== one.pid || before.tid !== one.tid || before.ts !== one.ts)
        throw traceError(this.path, `event ${this.events}, a part of flow ${one.id}, does not follow its span`);
      rank.spans.push({ ...rank.spans.pop()!, flow: flowOf(one) });
    }
  }

  /** Builds the trace from the spans collected so far. @param whole Whether the trace is complete. */
  finish<Facts extends TraceFacts>(facts: Facts, whole: boolean): ReadTrace<Facts> {
    if (!whole && !this.ordered)
      throw traceError(
        this.path,
        "was cut off, and its spans are not in order of begin, so its complete steps are unknown",
      );
    const reachedSeconds = this.reached;
    const isIncomplete = ({ track, endSeconds }: Span): boolean =>
      !whole && track === "steps" && endSeconds > reachedSeconds;
    const ranks = [...this.ranks]
      .map(([rank, { process, spans }]) => ({
        rank,
        process,
        spans: spans.toSorted((a, b) => a.startSeconds - b.startSeconds),
      }))
      .sort((a, b) => a.rank - b.rank);
    const incompleteSteps = [
      ...new Set(ranks.flatMap(({ spans }) => spans.filter(isIncomplete).map(({ name }) => name))),
    ];
    return {
      facts,
      ranks: ranks.map((rank) => ({ ...rank, spans: rank.spans.filter((span) => !isIncomplete(span)) })),
      events: this.events,
      ...(!whole && { cut: { reachedSeconds, incompleteSteps } }),
    };
  }
}

const checkedFacts = <Facts>(content: unknown, schema: z.ZodType<Facts>, path: string): Facts => {
  const { format, version } = (content ?? {}) as { readonly format?: unknown; readonly version?: unknown };
  if (format !== "skein-trace") throw traceError(path, "is a trace that another program has written");
  if (version !== 1) throw traceError(path, `its version is ${excerpt(version)}, but this program reads version 1`);
  const parsed = schema.safeParse(content);
  if (!parsed.success) throw traceError(path, `otherData.${problemOf(parsed.error)}`);
  return parsed.data;
};

/** Reads a Skein trace whose JSON was reformatted and no longer has one event per line. */
const parseWhole = <Facts extends TraceFacts>(
  text: string,
  schema: z.ZodType<Facts>,
  path: string,
): ReadTrace<Facts> => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw traceError(path, `is not JSON, or is a cut-off trace of another program (${(error as Error).message})`);
  }
  if (Array.isArray(content) && (content[0] as { readonly ph?: unknown } | undefined)?.ph !== undefined)
    throw traceError(path, "is a trace that another program has written");
  const { traceEvents, otherData } = (content ?? {}) as {
    readonly traceEvents?: unknown;
    readonly otherData?: unknown;
  };
  if (!Array.isArray(traceEvents)) throw traceError(path, "is JSON, but no trace: it has no traceEvents");
  const facts = checkedFacts(otherData, schema, path);
  const collector = new SpanCollector(path);
  for (const event of traceEvents) collector.add(event);
  return collector.finish(facts, true);
};

/** Maximum number of characters to parse at once, because a JavaScript string cannot be much longer. */
const maxCharacters = 2 ** 28;

/**
 * Returns the remaining lines.
 * @throws ArgumentError if the lines have more than `most` characters in total.
 */
const remainingLines = (lines: Iterator<string>, most: number, path: string): string[] => {
  const all: string[] = [];
  for (let line = lines.next(), remaining = most; line.done !== true; line = lines.next()) {
    remaining -= line.value.length + 1;
    if (remaining < 0) throw traceError(path, "is too large for a trace that does not have one event per line");
    all.push(line.value);
  }
  return all;
};

/**
 * Parses a trace from its lines. If the end of the trace is missing, the result has the same data as the complete trace
 * for all steps that ended before the last complete span begins, because spans are in the order of start times.
 *
 * Cost: linear in events; one line is in memory at a time.
 *
 * @param schema Schema of the run metadata before the events: `traceFacts`, or an extension.
 * @param path Path of the file, for error messages.
 * @throws ArgumentError with a one-line message, if neither skein-train nor skein-profile wrote the text, or if a line
 * is damaged.
 */
export const parseTrace = <Facts extends TraceFacts>(
  lines: Iterable<string>,
  schema: z.ZodType<Facts>,
  path: string,
): ReadTrace<Facts> => {
  const rest = lines[Symbol.iterator]();
  const first = rest.next();
  if (first.done === true || first.value === "") throw traceError(path, "is empty");
  const facts = factsIn(first.value);
  if (facts === undefined) {
    const others = remainingLines(rest, maxCharacters - first.value.length, path);
    if (others.length === 0 && isHeadCut(first.value)) throw traceError(path, "was cut off before its first event");
    return parseWhole([first.value, ...others].join("\n"), schema, path);
  }
  const checked = checkedFacts(facts, schema, path);
  const collector = new SpanCollector(path);
  for (let line = rest.next(); line.done !== true; ) {
    const text = line.value;
    line = rest.next();
    if (/^\]\}?$/.test(text)) {
      if (line.done !== true && line.value.trim() !== "")
        throw traceError(path, "continues after its end: it may be two files in one");
      return collector.finish(checked, true);
    }
    let event: unknown;
    try {
      event = JSON.parse(text.endsWith(",") ? text.slice(0, -1) : text);
    } catch (error) {
      if (line.done === true) break; // the line is incomplete
      throw traceError(path, `event ${collector.events + 1} is damaged (${(error as Error).message})`);
    }
    collector.add(event);
  }
  return collector.finish(checked, false);
};
