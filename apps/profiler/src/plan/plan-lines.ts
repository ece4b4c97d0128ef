import { bytesText, secondsText, shareText, type TextColumn, textTable } from "@skein/report";
import type { Settings } from "../predict/candidates.ts";
import { oneBucketBytes } from "../predict/groupings.ts";
import type { Keep, PlannedWorld } from "./plan-worlds.ts";
import type { Scored } from "./score.ts";

const number = { numeric: true, cutAt: "end", least: 1 } as const;
const word = { numeric: false, cutAt: "end" } as const;

const columns: readonly TextColumn[] = [
  { heading: "step", ...number, weight: 9 },
  { heading: "exposed", ...number, weight: 5 },
  { heading: "codec", ...number, weight: 5 },
  { heading: "sent", ...number, weight: 4 },
  { heading: "compression", ...word, least: 10, weight: 8 },
  { heading: "overlap", ...word, least: 9, weight: 7 },
  { heading: "buckets", ...word, least: 10, weight: 6 },
];

const worldColumns: readonly TextColumn[] = [
  { heading: "ranks", ...number, weight: 9 },
  { heading: "step", ...number, weight: 9 },
  { heading: "samples/s", ...number, weight: 8 },
  { heading: "efficiency", ...number, weight: 7 },
  { heading: "epoch", ...number, weight: 7 },
  { heading: "compression", ...word, least: 10, weight: 6 },
  { heading: "overlap", ...word, least: 9, weight: 5 },
  { heading: "buckets", ...word, least: 10, weight: 4 },
];

/** Formats settings in words: `{kind: "top-k", density: 0.01}` → "top-k density 0.01". */
export const words = (settings: unknown): string => {
  if (typeof settings !== "object" || settings === null) return String(settings);
  const { kind, ...rest } = settings as Settings;
  if (kind === "fixed-size")
    return rest["bytes"] === oneBucketBytes ? "one" : `up to ${bytesText(rest["bytes"] as number)}`;
  return [String(kind), ...Object.entries(rest).map(([key, value]) => `${key} ${String(value)}`)].join(" ");
};

const scheduleOf = ({ settings }: Scored): string[] => [words(settings["overlap"]), words(settings["buckets"])];

const rowOf = (scored: Scored): string[] => [
  secondsText(scored.seconds),
  secondsText(scored.exposedSeconds),
  secondsText(scored.codecSeconds),
  bytesText(scored.sentBytes),
  words(scored.settings["compression"]),
  ...scheduleOf(scored),
];

const isDense = ({ settings }: Scored): boolean => (settings["compression"] as Settings)["kind"] === "identity";

/**
 * Returns the fastest schedule of each compression; dense is first.
 * @param scored Configurations with scores, fastest first.
 */
export const bestPerCompression = (scored: readonly Scored[]): Scored[] => {
  const best = new Map<string, Scored>();
  for (const one of scored) {
    const key = JSON.stringify(one.settings["compression"]);
    if (!best.has(key)) best.set(key, one);
  }
  return [...best.values()].toSorted((a, b) => Number(isDense(b)) - Number(isDense(a)) || a.seconds - b.seconds);
};

/** Maximum number of printed schedules without compression error. */
const maxLossless = 5;

/** Maximum number of printed reasons for skipped configurations. */
const maxLeftOut = 5;

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Formats a line that describes the search space. */
export const spaceLine = (worlds: readonly PlannedWorld[]): string => {
  const total = worlds.reduce((sum, { scored }) => sum + scored.length, 0);
  const [{ space, scored }] = worlds as [PlannedWorld];
  const plans = new Set(scored.map(({ settings }) => JSON.stringify(settings["buckets"]))).size;
  const halves =
    space.halves.priced === 0
      ? "no steps in halves"
      : `of ${counted(space.halves.priced, "plan")} in halves, the best ${space.halves.simulated} by a closed form`;
  return `searched ${counted(space.compressions, "compression")}, ${counted(plans, "bucket plan")}, with and without overlap; ${halves}; ${counted(worlds.length, "number")} of ranks: ${total} configurations simulated`;
};

const keeps: { readonly [keep in Keep]: string } = {
  "rank-batch": "each rank keeps its samples of a step",
  "global-batch": "all ranks together keep the samples of a step",
};

/** Formats a table of the best configuration for each number of ranks. */
export const worldLines = (worlds: readonly PlannedWorld[], keep: Keep, columnsOfTerminal: number): string[] => {
  const rows = worlds.map(({ ranks, scored: [best], samplesPerSecond, efficiency, epochSeconds }) => [
    String(ranks),
    secondsText(best!.seconds),
    samplesPerSecond.toPrecision(3),
    shareText(efficiency),
    Number.isFinite(epochSeconds) ? secondsText(epochSeconds) : "unbounded",
    words(best!.settings["compression"]),
    ...scheduleOf(best!),
  ]);
  return [
    `by number of ranks; ${keeps[keep]}; efficiency relative to a single rank`,
    ...textTable(worldColumns, rows, columnsOfTerminal),
  ];
};

/** Formats tables of the configurations for one number of ranks, followed by bounds and skipped configurations. */
export const configurationLines = ({ scored, bounds, leftOut }: PlannedWorld, columnsOfTerminal: number): string[] => {
  const bestSchedules = bestPerCompression(scored);
  const lossless = scored.filter(isDense).slice(0, maxLossless);
  return [
    ...(bestSchedules.length > 1
      ? [
          "the best schedule of each compression; codec is the time of the compression's own kernels",
          ...textTable(columns, bestSchedules.map(rowOf), columnsOfTerminal),
          "",
        ]
      : []),
    `without loss, the fastest ${lossless.length}`,
    ...textTable(columns, lossless.map(rowOf), columnsOfTerminal),
    "",
    ...(bestSchedules.length > 1
      ? [
          'a compression changes training: docs/algorithms.md, "Which to use", lists the risk and the accuracy cost of each',
        ]
      : []),
    ...bounds.map(
      ({ name, exposedSeconds, besideSeconds, why }) =>
        `closed forms for a single network, dense: ${name} would expose ${secondsText(exposedSeconds)}, mg-wfbp ${secondsText(besideSeconds)}; ${why}`,
    ),
    ...(leftOut.length === 0
      ? []
      : ["", `left out, ${leftOut.length}:`, ...leftOut.slice(0, maxLeftOut).map((line) => `  ${line}`)]),
  ];
};
