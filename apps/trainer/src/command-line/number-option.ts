import { ConfigError } from "../errors.ts";
import type { WhichCheckpoint } from "../output-folder/saved-run.ts";

/** Which numbers an option takes, and how that is said. */
export interface NumberRange {
  readonly rule: string;
  readonly fits: (value: number) => boolean;
}

export const wholeFrom = (least: number): NumberRange => ({
  rule: `a whole number from ${least}`,
  fits: (value) => Number.isSafeInteger(value) && value >= least,
});

/** The number that an option of the command line says. @throws ConfigError for what is none of the range. */
export const numberOption = (name: string, text: string, { rule, fits }: NumberRange): number => {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value) && fits(value)) return value;
  throw new ConfigError([`--${name} is ${JSON.stringify(text)}, but must be ${rule}`]);
};

/** The step of a checkpoint, or the best one, where the option is there. */
export const checkpointOption = (text: string | undefined): WhichCheckpoint | undefined => {
  if (text === undefined || text === "best") return text;
  const { fits, rule } = wholeFrom(1);
  return numberOption("checkpoint", text, { fits, rule: `${rule}, or best` });
};
