import type { SoundRun } from "./attacked-run.ts";

/** Result of an attack. */
export interface Outcome {
  /** Tries by target or outcome, for people. */
  readonly counts: Readonly<Record<string, number>>;
  /** One line for each try that did harm: what was done, and the harm. */
  readonly fallen: readonly string[];
}

export interface AttackInput {
  /** Number of tries. */
  readonly count: number;
  /** Seed of all draws, so that a harmful try can be repeated. */
  readonly seed: string;
  /** A folder for the attack; it is removed afterwards. */
  readonly folder: string;
  /** The expected end of a run, whatever is done to it. */
  readonly sound: SoundRun;
}

/** An attack on a run from outside. One file each, and a row in the table. */
export interface Attack {
  /** One word, its name on the command line. */
  readonly name: string;
  /** Description of the attack and the required outcome, in one line. */
  readonly what: string;
  /** Tries in the regular test run, which may take seconds at most. */
  readonly fewTries: number;
  /** Left out of the default tests, which cover it otherwise; `pnpm test:full` includes it. */
  readonly inFullRun?: boolean;
  /** Tries of `pnpm test:attack`. */
  readonly tries: number;
  run(input: AttackInput): Promise<Outcome>;
}
