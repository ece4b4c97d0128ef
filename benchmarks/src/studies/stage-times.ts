import { readFileSync } from "node:fs";

/** What of a step a span is of. */
export interface StageRule {
  readonly stage: string;
  /** A regular expression, of track, phase, operator and scope with blanks between: `compute update cholesky a/b`. */
  readonly matches: string;
}

/** A span as a trace has it. */
interface SpanEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: string;
  /** Its rank. */
  readonly pid: number;
  /** In microseconds, as is `dur`. */
  readonly ts: number;
  readonly dur: number;
  readonly args?: { readonly phase?: string; readonly operator?: string; readonly scope?: string };
}

/** What no rule matches, and what no span covers. */
export const restOfStep = "rest";

/** Spans of what a rank's own thread does, which never overlap; collectives under way beside it are none. */
const ownTracks: ReadonlySet<string> = new Set(["compute", "waiting", "host", "data"]);

const endOf = ({ ts, dur }: SpanEvent): number => ts + dur;

/** Spans without those that lie in another. */
const outermost = (spans: readonly SpanEvent[]): SpanEvent[] => {
  const outer: SpanEvent[] = [];
  for (const span of spans.toSorted((a, b) => a.ts - b.ts || b.dur - a.dur))
    if (outer.length === 0 || span.ts >= endOf(outer.at(-1)!)) outer.push(span);
  return outer;
};

/** What each stage takes of a rank's step, in seconds; together the step, without what it spends on compiling. */
const stagesOf = (
  step: SpanEvent,
  spans: readonly SpanEvent[],
  stageOf: (span: SpanEvent) => string,
): Map<string, number> => {
  const seconds = new Map<string, number>();
  let rest = step.dur;
  for (const span of outermost(spans)) {
    rest -= span.dur;
    if (span.name.startsWith("compile ")) continue; // once in a run, whatever step it meets
    const stage = stageOf(span);
    seconds.set(stage, (seconds.get(stage) ?? 0) + span.dur / 1e6);
  }
  return seconds.set(restOfStep, (seconds.get(restOfStep) ?? 0) + Math.max(0, rest) / 1e6);
};

/**
 * Read from a trace of the trainer what each step spends on each stage, mean of the ranks: with what is left over the
 * stages add up to the step.
 *
 * @param path of the file, which has an event a line.
 * @param rules of which the first that matches counts.
 * @returns seconds by stage of each step, in order.
 */
export const stageTimes = (path: string, rules: readonly StageRule[]): ReadonlyMap<string, number>[] => {
  const spans = readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line): SpanEvent[] =>
      line.startsWith('{"name"') ? [JSON.parse(line.replace(/,$/, "")) as SpanEvent] : [],
    )
    .filter(({ ph }) => ph === "X");
  const patterns = rules.map(({ stage, matches }) => ({ stage, pattern: new RegExp(matches) }));
  const stageOf = ({ cat, args = {} }: SpanEvent): string => {
    const text = [cat, args.phase, args.operator, args.scope].filter((part) => part !== undefined).join(" ");
    return patterns.find(({ pattern }) => pattern.test(text))?.stage ?? restOfStep;
  };
  const byRank = [...Map.groupBy(spans, ({ pid }) => pid).values()].map((own) => {
    const rest = own.filter(({ cat }) => ownTracks.has(cat)).sort((a, b) => a.ts - b.ts);
    let next = 0;
    return own
      .filter(({ cat }) => cat === "steps")
      .sort((a, b) => a.ts - b.ts)
      .map((step) => {
        while (next < rest.length && rest[next]!.ts < step.ts) next++;
        const begin = next;
        while (next < rest.length && rest[next]!.ts < endOf(step)) next++;
        return stagesOf(step, rest.slice(begin, next), stageOf);
      });
  });
  return Array.from({ length: Math.min(...byRank.map(({ length }) => length)) }, (_, step) => {
    const mean = new Map<string, number>();
    for (const steps of byRank)
      for (const [stage, seconds] of steps[step]!) mean.set(stage, (mean.get(stage) ?? 0) + seconds / byRank.length);
    return mean;
  });
};
