import { ConfigError } from "@skein/cli/node";
import type { CheckpointChoice } from "../output-folder/saved-run.ts";

/** Range of numbers that an option accepts. `rule` describes the range in error messages. */
export interface NumberRange {
  readonly rule: string;
  readonly fits: (value: number) => boolean;
}

export const wholeFrom = (least: number): NumberRange => ({
  rule: `a whole number from ${least}`,
  fits: (value) => Number.isSafeInteger(value) && value >= least,
});

/** Parses the number given for a command-line option. @throws ConfigError if the number is not in the range. */
export const numberOption = (name: string, text: string, { rule, fits }: NumberRange): number => {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value) && fits(value)) return value;
  throw new ConfigError([`--${name} is ${JSON.stringify(text)}, but must be ${rule}`]);
};

/** Parses the option `--checkpoint`: a step, or `best`. Returns undefined if the option is absent. */
export const checkpointOption = (text: string | undefined): CheckpointChoice | undefined => {
  if (text === undefined || text === "best") return text;
  const { fits, rule } = wholeFrom(1);
  return numberOption("checkpoint", text, { fits, rule: `${rule}, or best` });
};
