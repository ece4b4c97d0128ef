import type { AttackInput, Outcome } from "./attack.ts";
import { type Draw, drawFrom } from "./draw.ts";

/** Result of one try. */
export interface Verdict {
  /** Name under which it is counted. */
  readonly counted: string;
  /** Description of the attempt and its harm, in one line; absent without harm. */
  readonly harm?: string | undefined;
}

/**
 * Make `count` tries one after the other, count them, and collect the harm.
 * @param attempt a try; its draws depend on the seed and its number only.
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

/** Counts attempts over a list of cases: each once if there are enough tries, otherwise a random choice. */
export const tryCases = <Case>(
  { count, seed }: Pick<AttackInput, "count" | "seed">,
  cases: readonly Case[],
  attempt: (one: Case) => Verdict,
): Promise<Outcome> =>
  countTries({ count: Math.min(count, cases.length), seed }, (number, draw) =>
    attempt(count >= cases.length ? cases[number]! : cases[draw(cases.length)]!),
  );
