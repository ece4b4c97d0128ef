import { readFileSync } from "node:fs";

/** Rule that assigns spans to a stage of a step. */
export interface StageRule {
  readonly stage: string;
  /**
   * Regular expression for the span's track, phase, operator and scope, separated by spaces: `compute update cholesky
   * a/b`.
   */
  readonly matches: string;
}

/** Complete event (`ph` is "X") of a Chrome trace. */
interface SpanEvent {
  readonly name: string;
  readonly cat: string;
  readonly ph: string;
  /** Rank number. */
  readonly pid: number;
  /** Start in microseconds. `dur` is the duration in microseconds. */
  readonly ts: number;
  readonly dur: number;
  readonly args?: { readonly phase?: string; readonly operator?: string; readonly scope?: string };
}

/** Name of the stage for spans that no rule matches, and for time that no span covers. */
const restOfStep = "rest";

/**
 * Tracks of a rank's main thread, whose spans never overlap except by nesting. Collectives that run concurrently are on
 * other tracks.
 */
const ownTracks: ReadonlySet<string> = new Set(["compute", "waiting", "host", "data"]);

const endOf = ({ ts, dur }: SpanEvent): number => ts + dur;

/** Returns the spans that are not nested in another span. */
const outermost = (spans: readonly SpanEvent[]): SpanEvent[] => {
  const outer: SpanEvent[] = [];
  for (const span of spans.toSorted((a, b) => a.ts - b.ts || b.dur - a.dur))
    if (outer.length === 0 || span.ts >= endOf(outer.at(-1)!)) outer.push(span);
  return outer;
};

/**
 * Returns the seconds of each stage of a rank's step. The stages add up to the time of the step without compilation.
 */
const stagesOf = (
  step: SpanEvent,
  spans: readonly SpanEvent[],
  stageOf: (span: SpanEvent) => string,
): Map<string, number> => {
  const seconds = new Map<string, number>();
  let rest = step.dur;
  for (const span of outermost(spans)) {
    rest -= span.dur;
    if (span.name.startsWith("compile ")) continue; // compilation happens once per run, in an arbitrary step
    const stage = stageOf(span);
    seconds.set(stage, (seconds.get(stage) ?? 0) + span.dur / 1e6);
  }
  return seconds.set(restOfStep, (seconds.get(restOfStep) ?? 0) + Math.max(0, rest) / 1e6);
};

/**
 * Reads the stage times of each step from a trainer's trace, averaged over ranks. The stages, including the rest, add
 * up to the step.
 *
 * @param path Path of the trace file, which has one event per line.
 * @param rules Rules in order of precedence; the first matching rule applies.
 * @returns seconds by stage, for each step in order.
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
