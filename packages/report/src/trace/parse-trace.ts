import type { RankSpans, Span } from "@skein/tensor-core";
import { excerpt } from "@skein/tensor-core/backend";
import type { z } from "zod";
import { flowOf, type SpanEvent, spanOf, traceEvent, type TraceFacts } from "./trace-event.ts";
import { traceError } from "./trace-error.ts";

/** What a trace held that ends in the middle. */
export interface TraceCut {
  /** Up to here all spans have been read, by the clock of the trace. */
  readonly reachedSeconds: number;
  /** Steps that had begun and are not whole, of all ranks. */
  readonly begunSteps: readonly string[];
}

/** A trace that was read back. */
export interface ReadTrace<Facts extends TraceFacts = TraceFacts> {
  readonly facts: Facts;
  /** In order, spans as they begin. Steps that are not whole are left out; their kernels are there. */
  readonly ranks: readonly RankSpans[];
  readonly events: number;
  /** Absent where the trace is whole. */
  readonly cut?: TraceCut | undefined;
}

const head = '{"displayTimeUnit":"ms","otherData":';
const afterFacts = ',"traceEvents":[';

/**
 * The line that every trace of ours begins with.
 *
 * @returns the facts in it; undefined where the line is another's, or was cut off.
 */
const factsIn = (line: string): unknown => {
  if (!line.startsWith(head) || !line.endsWith(afterFacts)) return undefined;
  try {
    return JSON.parse(line.slice(head.length, -afterFacts.length));
  } catch {
    return undefined;
  }
};

/** Whether a line is what is left of the first line of one of our traces. */
const isHeadCut = (line: string): boolean => line !== "" && (head.startsWith(line) || line.startsWith(head));

/** What is wrong with a value, in few words. */
const problemOf = (error: z.ZodError): string => {
  const { path, message } = error.issues[0]!;
  return `${path.map(String).join(".")} ${message.replace(/^Invalid input: /, "")}`.trim();
};

/** Gathers the spans of ranks from events, in their order. */
class SpanGatherer {
  events = 0;
  private readonly ranks = new Map<number, { process: string | undefined; readonly spans: Span[] }>();
  private before: SpanEvent | undefined;
  /** When the last span begins; where a later event has begun before, there is no such moment. */
  private reached = -Infinity;
  private ordered = true;
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  take(event: unknown): void {
    const parsed = traceEvent.safeParse(event);
    if (!parsed.success)
      throw traceError(
        this.path,
        `event ${this.events + 1}, ${excerpt(event)}, is none of ours (${problemOf(parsed.error)})`,
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
        throw traceError(this.path, `event ${this.events}, a part of flow ${one.id}, does not stand behind its span`);
      rank.spans.push({ ...rank.spans.pop()!, flow: flowOf(one) });
    }
  }

  /** @param whole whether the trace had its end. */
  done<Facts extends TraceFacts>(facts: Facts, whole: boolean): ReadTrace<Facts> {
    if (!whole && !this.ordered)
      throw traceError(
        this.path,
        "it was cut off, and its spans are in no order of time, so what is missing cannot be told",
      );
    const reachedSeconds = this.reached;
    const begun = ({ track, endSeconds }: Span): boolean => !whole && track === "steps" && endSeconds > reachedSeconds;
    const ranks = [...this.ranks]
      .map(([rank, { process, spans }]) => ({
        rank,
        process,
        spans: spans.toSorted((a, b) => a.startSeconds - b.startSeconds),
      }))
      .sort((a, b) => a.rank - b.rank);
    const begunSteps = [...new Set(ranks.flatMap(({ spans }) => spans.filter(begun).map(({ name }) => name)))];
    return {
      facts,
      ranks: ranks.map((rank) => ({ ...rank, spans: rank.spans.filter((span) => !begun(span)) })),
      events: this.events,
      ...(!whole && { cut: { reachedSeconds, begunSteps } }),
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

/** Read a trace that has our events, though not on lines as we write them. */
const parseWhole = <Facts extends TraceFacts>(
  text: string,
  schema: z.ZodType<Facts>,
  path: string,
): ReadTrace<Facts> => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw traceError(
      path,
      `is no JSON, or a trace that was cut off and that no program of ours has written (${(error as Error).message})`,
    );
  }
  if (Array.isArray(content) && (content[0] as { readonly ph?: unknown } | undefined)?.ph !== undefined)
    throw traceError(path, "is a trace that another program has written");
  const { traceEvents, otherData } = (content ?? {}) as {
    readonly traceEvents?: unknown;
    readonly otherData?: unknown;
  };
  if (!Array.isArray(traceEvents)) throw traceError(path, "is JSON, but no trace: it has no traceEvents");
  const facts = checkedFacts(otherData, schema, path);
  const gatherer = new SpanGatherer(path);
  for (const event of traceEvents) gatherer.take(event);
  return gatherer.done(facts, true);
};

/** More does not fit into one string. */
const mostCharacters = 2 ** 28;

/** The lines that are left, all at once. */
const linesWithin = (lines: Iterator<string>, most: number, path: string): string[] => {
  const all: string[] = [];
  for (let line = lines.next(), left = most; line.done !== true; line = lines.next()) {
    left -= line.value.length + 1;
    if (left < 0) throw traceError(path, "is large, and is not laid out as our traces are, an event a line");
    all.push(line.value);
  }
  return all;
};

/**
 * Read a trace back from its lines, up to where it ends. One that was cut off gives what the whole gives of all steps
 * that ended before the last span that is whole begins: spans stand in the order in which they begin.
 *
 * Cost: linear in events; lines are held one at a time.
 *
 * @param schema of what stands before the events: `traceFacts`, or more than that.
 * @param path of the file, for errors.
 * @throws ArgumentError in one line, for what no program of ours has written and for a line that is damaged.
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
    const others = linesWithin(rest, mostCharacters - first.value.length, path);
    if (others.length === 0 && isHeadCut(first.value)) throw traceError(path, "was cut off before its first event");
    return parseWhole([first.value, ...others].join("\n"), schema, path);
  }
  const checked = checkedFacts(facts, schema, path);
  const gatherer = new SpanGatherer(path);
  for (let line = rest.next(); line.done !== true; ) {
    const text = line.value;
    line = rest.next();
    if (/^\]\}?$/.test(text)) {
      if (line.done !== true && line.value.trim() !== "")
        throw traceError(path, "goes on after its end: it may be two files in one");
      return gatherer.done(checked, true);
    }
    let event: unknown;
    try {
      event = JSON.parse(text.endsWith(",") ? text.slice(0, -1) : text);
    } catch (error) {
      if (line.done === true) break; // the line in which it was cut
      throw traceError(path, `event ${gatherer.events + 1} is damaged (${(error as Error).message})`);
    }
    gatherer.take(event);
  }
  return gatherer.done(checked, false);
};
