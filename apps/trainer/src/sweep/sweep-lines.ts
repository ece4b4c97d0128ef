import { redactSecrets, shellCommand } from "@skein/cli/node";
import { digitsText, printable, secondsText, shareText, type TextColumn, textTable } from "@skein/report";
import type { Chance } from "@skein/step/node";
import { settingOf } from "./search-space.ts";
import type { SweepFile, Trial } from "./sweep-file.ts";

const stateOrder: readonly Trial["state"][] = ["finished", "under way", "failed"];

/** Sorts trials: best first, failed trials last. */
export const ranked = (trials: readonly Trial[]): Trial[] =>
  trials.toSorted(
    (a, b) =>
      stateOrder.indexOf(a.state) - stateOrder.indexOf(b.state) || (a.loss ?? 0) - (b.loss ?? 0) || a.trial - b.trial,
  );

/** Formats a value of a trial for the user. */
export const valueText = (value: unknown): string =>
  printable(redactSecrets(typeof value === "string" ? value : JSON.stringify(value)));

/** A run with its result, as a row of a table. */
export interface TableRow extends Pick<Trial, "loss" | "accuracy" | "seconds" | "reason"> {
  readonly name: string;
  /** Values set by the run, by key. All rows have the same keys. */
  readonly values: Trial["values"];
  /** State of the run as a single word. */
  readonly state: string;
}

/**
 * Formats runs as lines of a table.
 *
 * @param heading Heading of the name column. @param width Number of terminal columns. @param lossOn Name of the samples
 * on which the loss is computed.
 */
export const outcomeTable = (
  rows: readonly TableRow[],
  { heading, width, lossOn }: { readonly heading: string; readonly width: number; readonly lossOn: string },
): string[] => {
  const keys = Object.keys(rows[0]?.values ?? {});
  const hasAccuracy = rows.some(({ accuracy }) => accuracy !== undefined);
  const column = (heading: string, weight: number, numeric: boolean): TextColumn => ({
    heading,
    weight,
    numeric,
    cutAt: "end",
    least: 8,
  });
  return textTable(
    [
      column(heading, 9, heading === "trial"),
      column(`${lossOn} loss`, 8, true),
      ...(hasAccuracy ? [column("accuracy", 3, true)] : []),
      ...keys.map((key) => column(printable(key), 7, false)),
      column("took", 2, true),
      column("state", 4, false),
    ],
    rows.map(({ name, loss, accuracy, values, seconds, state, reason }) => [
      name,
      digitsText(loss, 4),
      ...(hasAccuracy ? [accuracy === undefined ? "–" : shareText(accuracy)] : []),
      ...keys.map((key) => valueText(values[key])),
      seconds === undefined ? "–" : secondsText(seconds),
      reason === undefined ? state : `${state}: ${printable(reason.split("\n")[0]!)}`,
    ]),
    width,
  );
};

/** Formats trials as lines of a table, best first. @param width Number of terminal columns. */
export const sweepTable = ({ trials }: SweepFile, width: number): string[] =>
  outcomeTable(
    ranked(trials).map((trial) => ({ ...trial, name: String(trial.trial) })),
    { heading: "trial", width, lossOn: "validation" },
  );

/**
 * Returns the command that trains with the values of a trial, on all training samples.
 *
 * @param options Options of the sweep that apply to each run, such as `--set` and `--ranks`.
 */
export const trainCommand = (job: string, options: readonly string[], { values }: Trial): string =>
  `skein-train run ${shellCommand([
    job,
    ...options,
    ...Object.entries(values).flatMap(([key, value]) => ["--set", settingOf({ path: [key] }, value)]),
  ])}`;

/**
 * Returns a remark if no finished trial is better than guessing, because then the choice of the best trial is
 * arbitrary.
 *
 * @returns undefined if a trial is better than guessing, or if the result of guessing is unknown.
 */
export const chanceRemark = (trials: readonly Trial[], chance: Chance): string | undefined => {
  const finished = trials.filter(({ state }) => state === "finished");
  if (finished.length === 0) return undefined;
  const cure = "the best of them is arbitrary; search elsewhere, train for more --steps, or check the labels";
  if (chance.accuracy !== undefined && finished.every(({ accuracy }) => accuracy !== undefined)) {
    const best = Math.max(...finished.map(({ accuracy }) => accuracy!));
    return best > chance.accuracy
      ? undefined
      : `no trial is better than chance: the highest accuracy is ${shareText(best)}, and the most frequent class is ${shareText(chance.accuracy)} of the validation samples; ${cure}`;
  }
  const best = Math.min(...finished.map(({ loss }) => loss!));
  return chance.loss === undefined || best < chance.loss
    ? undefined
    : `no trial is better than chance: the lowest loss is ${digitsText(best, 4)}, and a uniform guess has ${digitsText(chance.loss, 4)}; ${cure}`;
};

/** Formats a finished or failed trial as a line. */
export const trialLine = ({ trial, values, state, loss, reason }: Trial): string => {
  const set = Object.entries(values)
    .map(([key, value]) => `${key}=${valueText(value)}`)
    .join(" ");
  return state === "finished"
    ? `trial ${trial}: ${set}: validation loss ${digitsText(loss, 4)}`
    : `trial ${trial}: ${set}: failed, and counts as the worst: ${reason!.split("\n")[0]!}`;
};
