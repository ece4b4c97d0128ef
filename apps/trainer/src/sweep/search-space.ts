import { type Override, parseSetting } from "../job-file/config.ts";
import { ConfigError } from "../errors.ts";

/** A key of the job, and the values that it may have. */
export type Dimension = Choice | Range;

/** Some values, each to be tried. */
export interface Choice {
  readonly kind: "choice";
  readonly path: readonly string[];
  readonly values: readonly unknown[];
}

/** All numbers between two, both included. */
export interface Range {
  readonly kind: "range";
  readonly path: readonly string[];
  readonly low: number;
  readonly high: number;
  /** With "log", twice as much is one step, whether from 1 or from 100. */
  readonly scale: "linear" | "log";
  readonly isWhole: boolean;
}

/** What a trial sets, in the order of the dimensions. */
export type Point = readonly unknown[];

/** Keys by which trials are judged: with others their results could not be compared. */
const fixedKeys: readonly string[] = ["name", "data.validationFraction", "data.testSamples", "data.judgeBy"];

export const keyOf = ({ path }: Pick<Dimension, "path">): string => path.join(".");

/** Words that YAML reads as no words. */
const notWords = /^(?:true|false|null)$/i;

/** `key=value` as a person would type it after `--set`. What is no plain word is JSON, which YAML reads. */
export const settingOf = (dimension: Pick<Dimension, "path">, value: unknown): string => {
  const isPlain = typeof value === "string" && /^[A-Za-z][\w-]*$/.test(value) && !notWords.test(value);
  return `${keyOf(dimension)}=${isPlain ? value : JSON.stringify(value)}`;
};

/** A point as values that go before those of the job file. @param option that errors name. */
export const overridesAt = (dimensions: readonly Dimension[], point: Point): Override[] =>
  dimensions.map((dimension, i) => ({
    path: dimension.path,
    value: point[i],
    origin: `${dimension.kind === "choice" ? "--grid" : "--random"} ${settingOf(dimension, point[i])}`,
  }));

/** Key and value of `key=value`. @throws ConfigError for a text without both. */
const cutAt = (text: string, option: string): readonly [key: string, value: string] => {
  const cut = text.indexOf("=");
  if (cut < 1)
    throw new ConfigError([
      `${option} ${text.slice(0, 80).replaceAll(/\p{C}/gu, "?")}: must begin with a key of the job and =, such as ${option} learningRate.peak=${option === "--grid" ? "0.1,0.03" : "log:1e-4..1e-1"}`,
    ]);
  return [text.slice(0, cut), text.slice(cut + 1)];
};

/** Read `key=value,value` of `--grid`. @throws ConfigError. */
const parseChoice = (text: string): Choice => {
  const [key, listed] = cutAt(text, "--grid");
  const { path, value, origin } = parseSetting(`${key}=[${listed}]`, "--grid");
  const values = value as readonly unknown[];
  const said = values.map((one) => JSON.stringify(one));
  const twice = said.find((one, i) => said.indexOf(one) !== i);
  if (values.length === 0 || values.includes(null))
    throw new ConfigError([`${origin}: a value is missing; name one or several, such as --grid batch=32,64`]);
  if (twice !== undefined)
    throw new ConfigError([`${origin}: ${twice} is there twice, and both trials would be the same; leave one out`]);
  return { kind: "choice", path, values };
};

const rangeForm = /^(?:(log|int|log-int):)?([^.].*?)\.\.(.+)$/;

/** Read `key=log:low..high` of `--random`. @throws ConfigError. */
const parseRange = (text: string): Range => {
  const [key, range] = cutAt(text, "--random");
  const { path } = parseSetting(`${key}=0`, "--random");
  const origin = `--random ${text.slice(0, 80).replaceAll(/\p{C}/gu, "?")}`;
  const [, form = "", least, most] = rangeForm.exec(range) ?? [];
  const fault = (rule: string): never => {
    throw new ConfigError([`${origin}: ${rule}`]);
  };
  if (least === undefined || most === undefined)
    return fault("must read key=low..high, key=log:low..high, key=int:low..high or key=log-int:low..high");
  const [low, high] = [Number(least), Number(most)];
  const isWhole = form.endsWith("int");
  if (!Number.isFinite(low) || !Number.isFinite(high) || least.trim() === "" || most.trim() === "")
    return fault(`${Number.isFinite(low) ? most : least} is no number; a range goes from one number to a larger one`);
  if (low >= high) return fault(`goes from ${low} to ${high}, but the first must be smaller; swap them, or use --set`);
  if (form.startsWith("log") && low <= 0) return fault(`begins at ${low}, but a log scale begins above 0; raise it`);
  if (isWhole && !(Number.isSafeInteger(low) && Number.isSafeInteger(high)))
    return fault(`goes from ${low} to ${high}, but int: is for whole numbers; leave int: out`);
  return { kind: "range", path, low, high, scale: form.startsWith("log") ? "log" : "linear", isWhole };
};

/** What `--grid` and `--random` say. @throws ConfigError for a key that is there twice, or that judges trials. */
export const searchSpace = (grid: readonly string[], random: readonly string[]): readonly Dimension[] => {
  const dimensions: readonly Dimension[] = [...grid.map(parseChoice), ...random.map(parseRange)];
  if (dimensions.length === 0)
    throw new ConfigError(["nothing is to be tried; add --grid key=value,value or --random key=low..high"]);
  const keys = dimensions.map(keyOf);
  for (const [i, key] of keys.entries()) {
    const other = keys.findIndex((one, at) => at < i && (`${key}.`.startsWith(`${one}.`) || one.startsWith(`${key}.`)));
    if (other !== -1)
      throw new ConfigError([`${keys[other]!} and ${key} set the same place of the job; keep one of them`]);
    if (fixedKeys.includes(key))
      throw new ConfigError([
        `${key} cannot be searched over: all trials are judged by the same samples, under one name; use --set`,
      ]);
  }
  return dimensions;
};

/** A number of a range, by how far along its scale it is, 0 to 1. */
export const numberAt = ({ low, high, scale, isWhole }: Range, share: number): number => {
  const exact = scale === "log" ? low * (high / low) ** share : low + (high - low) * share;
  return shortened({ low, high, isWhole }, exact);
};

/** The number of a range that is nearest: whole, or with four digits more than low and high have in common. */
export const shortened = ({ low, high, isWhole }: Pick<Range, "low" | "high" | "isWhole">, exact: number): number => {
  const common = Math.max(0, Math.ceil(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / (high - low))));
  return Math.min(
    high,
    Math.max(low, isWhole ? Math.round(exact) : Number(exact.toPrecision(Math.min(17, 4 + common)))),
  );
};
