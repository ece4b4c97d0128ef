import type { SoundRun } from "./attacked-run.ts";

/** Result of all attempts of an attack. */
export interface Outcome {
  /** Number of attempts by target or result, for the report. */
  readonly counts: Readonly<Record<string, number>>;
  /** One line per harmful attempt, with the attempt and its damage. */
  readonly fallen: readonly string[];
}

export interface AttackInput {
  /** Number of attempts. */
  readonly count: number;
  /** Seed of all random numbers, so that a harmful attempt can be repeated. */
  readonly seed: string;
  /** Folder for the attack, which is removed afterwards. */
  readonly folder: string;
  /** Run without an attack, with which the end of the attacked run is compared. */
  readonly sound: SoundRun;
}

/** An attack on a run from outside. Each attack has its own file, and a row in the table. */
export interface Attack {
  /** Name of the attack on the command line, one word. */
  readonly name: string;
  /** One-line description of the attack and of the required result. */
  readonly what: string;
  /** Number of attempts in the regular test run, where an attack may take seconds at most. */
  readonly fewTries: number;
  /** Whether only `pnpm test:full` runs this attack, because other default tests cover it. Default: false. */
  readonly inFullRun?: boolean;
  /** Number of attempts of `pnpm test:attack`. */
  readonly tries: number;
  run(input: AttackInput): Promise<Outcome>;
}
