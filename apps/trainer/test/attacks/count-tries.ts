import type { AttackInput, Outcome } from "./attack.ts";
import { type Draw, drawFrom } from "./draw.ts";

/** What came of one try. */
export interface Verdict {
  /** What it is counted under. */
  readonly counted: string;
  /** What was done and what harm came of it, in one line; absent where none did. */
  readonly harm?: string | undefined;
}

/**
 * Make `count` tries one after the other, count them, and collect the harm.
 *
 * @param attempt what it draws follows from the seed and the number of the try alone.
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
 * The same over cases that can be told one by one: each once where there are tries for it, else as many as are drawn.
 */
export const tryCases = <Case>(
  { count, seed }: Pick<AttackInput, "count" | "seed">,
  cases: readonly Case[],
  attempt: (one: Case) => Verdict,
): Promise<Outcome> =>
  countTries({ count: Math.min(count, cases.length), seed }, (number, draw) =>
    attempt(count >= cases.length ? cases[number]! : cases[draw(cases.length)]!),
  );
