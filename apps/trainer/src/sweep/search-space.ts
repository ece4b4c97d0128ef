import { ConfigError } from "@skein/cli/node";
import { type Override, parseSetting } from "@skein/job/node";

/** Dimension of the search space: a job key with its possible values. */
export type Dimension = Choice | Range;

/** A job key with a list of values to try. */
export interface Choice {
  readonly kind: "choice";
  readonly path: readonly string[];
  readonly values: readonly unknown[];
}

/** A job key with all numbers between two inclusive bounds. */
export interface Range {
  readonly kind: "range";
  readonly path: readonly string[];
  readonly low: number;
  readonly high: number;
  /**
   * Scale on which values are distributed uniformly. With "log", a value between 1 and 2 is as likely as a value
   * between 2 and 4.
   */
  readonly scale: "linear" | "log";
  readonly isWhole: boolean;
}

/** Values of a trial, in the order of the dimensions. */
export type Point = readonly unknown[];

/**
 * Job keys that cannot be searched, because they change the evaluation, so that results of trials would not be
 * comparable.
 */
const fixedKeys: readonly string[] = ["name", "data.validationFraction", "data.testSamples", "data.judgeBy"];

export const keyOf = ({ path }: Pick<Dimension, "path">): string => path.join(".");

/** Matches words that YAML does not parse as text. */
const notWords = /^(?:true|false|null)$/i;

/**
 * Formats `key=value` as on the command line after `--set`. A value other than a plain word is written as JSON, which
 * YAML can read.
 */
export const settingOf = (dimension: Pick<Dimension, "path">, value: unknown): string => {
  const isPlain = typeof value === "string" && /^[A-Za-z][\w-]*$/.test(value) && !notWords.test(value);
  return `${keyOf(dimension)}=${isPlain ? value : JSON.stringify(value)}`;
};

/** Converts a point to overrides of the job file. */
export const overridesAt = (dimensions: readonly Dimension[], point: Point): Override[] =>
  dimensions.map((dimension, i) => ({
    path: dimension.path,
    value: point[i],
    origin: `${dimension.kind === "choice" ? "--grid" : "--random"} ${settingOf(dimension, point[i])}`,
  }));

/** Splits `key=value`. @throws ConfigError if the key or the value is missing. */
const cutAt = (text: string, option: string): readonly [key: string, value: string] => {
  const cut = text.indexOf("=");
  if (cut < 1)
    throw new ConfigError([
      `${option} ${text.slice(0, 80).replaceAll(/\p{C}/gu, "?")}: must begin with a key of the job and =, such as ${option} learningRate.peak=${option === "--grid" ? "0.1,0.03" : "log:1e-4..1e-1"}`,
    ]);
  return [text.slice(0, cut), text.slice(cut + 1)];
};

/** Parses the argument `key=value,value` of `--grid`. @throws ConfigError. */
const parseChoice = (text: string): Choice => {
  const [key, listed] = cutAt(text, "--grid");
  const { path, value, origin } = parseSetting(`${key}=[${listed}]`, "--grid");
  const values = value as readonly unknown[];
  const texts = values.map((one) => JSON.stringify(one));
  const duplicate = texts.find((one, i) => texts.indexOf(one) !== i);
  if (values.length === 0 || values.includes(null))
    throw new ConfigError([`${origin}: a value is missing; name one or more, such as --grid batch=32,64`]);
  if (duplicate !== undefined)
    throw new ConfigError([`${origin}: ${duplicate} occurs twice, and both trials would be the same; remove one`]);
  return { kind: "choice", path, values };
};

const rangeForm = /^(?:(log|int|log-int):)?([^.].*?)\.\.(.+)$/;

/** Parses the argument `key=log:low..high` of `--random`. @throws ConfigError. */
const parseRange = (text: string): Range => {
  const [key, range] = cutAt(text, "--random");
  const { path } = parseSetting(`${key}=0`, "--random");
  const origin = `--random ${text.slice(0, 80).replaceAll(/\p{C}/gu, "?")}`;
  const [, form = "", least, most] = rangeForm.exec(range) ?? [];
  const fault = (rule: string): never => {
    throw new ConfigError([`${origin}: ${rule}`]);
  };
  if (least === undefined || most === undefined)
    return fault("must have the form key=low..high, key=log:low..high, key=int:low..high or key=log-int:low..high");
  const [low, high] = [Number(least), Number(most)];
  const isWhole = form.endsWith("int");
  if (!Number.isFinite(low) || !Number.isFinite(high) || least.trim() === "" || most.trim() === "")
    return fault(
      `${Number.isFinite(low) ? most : least} is not a number; a range goes from one number to a larger one`,
    );
  if (low >= high) return fault(`goes from ${low} to ${high}, but the first must be smaller; swap them, or use --set`);
  if (form.startsWith("log") && low <= 0)
    return fault(`starts at ${low}, but a log scale must start above 0; raise it`);
  if (isWhole && !(Number.isSafeInteger(low) && Number.isSafeInteger(high)))
    return fault(`goes from ${low} to ${high}, but int: is for whole numbers; remove int:`);
  return { kind: "range", path, low, high, scale: form.startsWith("log") ? "log" : "linear", isWhole };
};

/**
 * Parses the arguments of `--grid` and `--random`.
 *
 * @throws ConfigError if a key occurs twice, or changes the evaluation.
 */
export const searchSpace = (grid: readonly string[], random: readonly string[]): readonly Dimension[] => {
  const dimensions: readonly Dimension[] = [...grid.map(parseChoice), ...random.map(parseRange)];
  if (dimensions.length === 0)
    throw new ConfigError(["there is nothing to try; add --grid key=value,value or --random key=low..high"]);
  const keys = dimensions.map(keyOf);
  for (const [i, key] of keys.entries()) {
    const other = keys.findIndex((one, at) => at < i && (`${key}.`.startsWith(`${one}.`) || one.startsWith(`${key}.`)));
    if (other !== -1)
      throw new ConfigError([`${keys[other]!} and ${key} set the same key of the job; keep one of them`]);
    if (fixedKeys.includes(key))
      throw new ConfigError([
        `${key} cannot be searched: all trials are evaluated on the same samples, under one name; use --set`,
      ]);
  }
  return dimensions;
};

/**
 * Converts a relative position in a range to a number, linearly in the scale of the range. The number is rounded by
 * `shortened`. @param share Relative position, 0 to 1.
 */
export const numberAt = ({ low, high, scale, isWhole }: Range, share: number): number => {
  const exact = scale === "log" ? low * (high / low) ** share : low + (high - low) * share;
  return shortened({ low, high, isWhole }, exact);
};

/**
 * Rounds a number of a range, so that the number is short to write. A range of integers rounds to integers. Any other
 * range keeps four significant digits, plus the leading digits that `low` and `high` have in common. The result is
 * within the range.
 */
export const shortened = ({ low, high, isWhole }: Pick<Range, "low" | "high" | "isWhole">, exact: number): number => {
  const common = Math.max(0, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))));
  return Math.min(
    high,
    Math.max(low, isWhole ? Math.round(exact) : Number(exact.toPrecision(Math.min(17, 4 + common)))),
  );
};
