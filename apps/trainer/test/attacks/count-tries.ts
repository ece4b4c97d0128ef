import type { AttackInput, Outcome } from "./attack.ts";
import { type Draw, drawFrom } from "./draw.ts";

/** Result of one attempt. */
export interface Verdict {
  /** Name under which the result is counted. */
  readonly counted: string;
  /** One-line description of the attempt and its damage. Absent: no damage. */
  readonly harm?: string | undefined;
}

/**
 * Runs `count` attempts one after the other. Returns the number of attempts per result name, and a description of each
 * harmful attempt.
 * @param attempt Runs one attempt. The random numbers of an attempt depend only on the seed and the number of the
 * attempt.
 */
export const countTries = async (
  { count, seed }: Pick<AttackInput, "count" | "seed">,
  attempt: (number: number, draw: Draw) => Verdict | Promise<Verdict>,
): Promise<Outcome> => {
  const counts: Record<string, number> = {};
  const fallen: string[] = [];
  for (let number = 0; number < count; number++) {
    const { counted, harm } = await attempt(number, drawFrom(`${seed} ${number}`));
    counts[counted] = (counts[counted] ?? 0) + 1;
    if (harm !== undefined) fallen.push(`${harm} (try ${number})`);
  }
  return { counts, fallen };
};

/**
 * Runs attempts for a list of cases: each case once if `count` is large enough, otherwise `count` randomly drawn cases.
 * Returns counts as `countTries` does.
 */
export const tryCases = <Case>(
  { count, seed }: Pick<AttackInput, "count" | "seed">,
  cases: readonly Case[],
  attempt: (one: Case) => Verdict,
): Promise<Outcome> =>
  countTries({ count: Math.min(count, cases.length), seed }, (number, draw) =>
    attempt(count >= cases.length ? cases[number]! : cases[draw(cases.length)]!),
  );
