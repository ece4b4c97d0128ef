import type { SoundRun } from "./attacked-run.ts";

/** How an attack went. */
export interface Outcome {
  /** Tries, by what they were aimed at or how they ended; for people. */
  readonly counts: Readonly<Record<string, number>>;
  /** One line for each try that did harm: what was done, and what came of it. */
  readonly fallen: readonly string[];
}

export interface AttackInput {
  /** How often to try. */
  readonly count: number;
  /** What is drawn follows from it, so that a try that did harm can be made again. */
  readonly seed: string;
  /** A folder of the attack's own; it is removed afterwards. */
  readonly folder: string;
  /** What a run must end with, whatever is done to it. */
  readonly sound: SoundRun;
}

/** Something that the outside may do to a run. One file each, and a row in the table. */
export interface Attack {
  /** One word, by which the command line knows it. */
  readonly name: string;
  /** What is done, and what must come of it, in one line. */
  readonly what: string;
  /** Tries in the test run: seconds at most. */
  readonly fewTries: number;
  /** Not among the default tests, which show the like otherwise; `pnpm test:full` makes them. */
  readonly inFullRun?: boolean;
  /** Tries of `pnpm test:attack`. */
  readonly tries: number;
  run(input: AttackInput): Promise<Outcome>;
}
