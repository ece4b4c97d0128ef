import { readFileSync } from "node:fs";

/** Rule that assigns spans to a stage of a step. */
export interface StageRule {
  readonly stage: string;
  /** A regular expression of track, phase, operator and scope, separated by spaces: `compute update cholesky a/b`. */
  readonly matches: string;
}

/** A span in a trace. */
interface SpanEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: string;
  /** Rank. */
  readonly pid: number;
  /** Start in microseconds; `dur` is in microseconds too. */
  readonly ts: number;
  readonly dur: number;
  readonly args?: { readonly phase?: string; readonly operator?: string; readonly scope?: string };
}

/** Stage of spans that no rule matches, and of time that no span covers. */
const restOfStep = "rest";

/**
 * Tracks of a rank's own thread, whose spans never overlap. Collectives in progress at the same time are on other
 * tracks.
 */
const ownTracks: ReadonlySet<string> = new Set(["compute", "waiting", "host", "data"]);

const endOf = ({ ts, dur }: SpanEvent): number => ts + dur;

/** Spans that are not within another span. */
const outermost = (spans: readonly SpanEvent[]): SpanEvent[] => {
  const outer: SpanEvent[] = [];
  for (const span of spans.toSorted((a, b) => a.ts - b.ts || b.dur - a.dur))
    if (outer.length === 0 || span.ts >= endOf(outer.at(-1)!)) outer.push(span);
  return outer;
};

/** Seconds of each stage of a rank's step. The sum is the time of the step without compilation. */
const stagesOf = (
  step: SpanEvent,
  spans: readonly SpanEvent[],
  stageOf: (span: SpanEvent) => string,
): Map<string, number> => {
  const seconds = new Map<string, number>();
  let rest = step.dur;
  for (const span of outermost(spans)) {
    rest -= span.dur;
    if (span.name.startsWith("compile ")) continue; // compilation happens once in a run, in any step
    const stage = stageOf(span);
    seconds.set(stage, (seconds.get(stage) ?? 0) + span.dur / 1e6);
  }
  return seconds.set(restOfStep, (seconds.get(restOfStep) ?? 0) + Math.max(0, rest) / 1e6);
};

/**
 * Reads the time of each stage in each step from a trace of the trainer, mean of the ranks. Together with the rest, the
 * stages add up to the step.
 *
 * @param path of the file, which has one event per line.
 * @param rules the first matching rule counts.
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
