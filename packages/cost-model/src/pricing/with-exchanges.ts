import { checkGroups, exchangePlaces } from "./exchange-places.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import { waitsAtTheirStarts } from "./rebucket.ts";
import { exchangeOfBucket, type PricedExchange } from "./priced-exchange.ts";
import type { StepProgram } from "./step-program.ts";

/** Buckets of a program that travel together, and what their exchange takes by itself. */
export interface GroupExchange {
  readonly buckets: readonly number[];
  readonly exchange: PricedExchange;
  /** Of its messages. Default: 0. */
  readonly priority?: number | undefined;
}

/**
 * Make of a step that exchanges each gradient by itself, dense and beside computation, the step that exchanges groups
 * of them in another way. As schedules have it: the first messages of a group leave when its last gradient is ready;
 * further ones once all gradients are; what needs no message is computed then; and results are waited for where the
 * first of them is needed. Without overlap, one exchange after the other once all gradients are there.
 *
 * What it leaves out: kernels of an exchange that would become one with those of the model or the optimizer, but for
 * the reading of the mean.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError for groups that do not hold every bucket once, or a program whose exchanges have several
 * messages.
 */
export const withExchanges = (
  program: StepProgram,
  groups: readonly GroupExchange[],
  overlap: "wait-free" | "none",
): StepProgram => {
  const places = exchangePlaces(program);
  checkGroups(
    groups.map(({ buckets }) => buckets),
    places.keys(),
  );
  const all = [...places.values()];
  const removed = new Set(all.flatMap(({ encode, start, wait, decode }) => [...encode, start, wait, ...decode]));
  const steps = freeSteps(program);
  const inserted = new Map<number, FreeStep[]>();
  const insert = (index: number, added: readonly FreeStep[]): void => {
    const there = inserted.get(index);
    if (there === undefined) inserted.set(index, [...added]);
    else there.push(...added);
  };
  const [lastStart, firstWait] = [Math.max(...all.map(({ start }) => start)), Math.min(...all.map(({ wait }) => wait))];
  const own = groups.map(({ buckets, exchange, priority = 0 }) => {
    const mine = buckets.map((bucket) => places.get(bucket)!);
    return {
      ...exchangeOfBucket(exchange, buckets[0]!, priority),
      readyAt: Math.max(...mine.map(({ start }) => start)),
      neededAt: Math.min(...mine.map(({ wait }) => wait)),
    };
  });
  if (overlap === "none")
    for (const { rounds, beside, after } of own) insert(firstWait, [...rounds.flat(), ...after, ...beside]);
  else {
    for (const { rounds, readyAt } of own) insert(readyAt, rounds[0]!);
    const numRounds = Math.max(...own.map(({ rounds }) => rounds.length));
    for (let round = 1; round < numRounds; round++)
      for (const { rounds } of own) insert(lastStart, rounds[round] ?? []);
    for (const { beside } of own) insert(firstWait, beside);
    for (const { after, neededAt } of own) insert(neededAt, after);
  }
  const moved = overlap === "none" ? waitsAtTheirStarts(steps, removed, insert) : new Set<number>();
  return linkedSteps(
    steps.flatMap((step, index) => [
      ...(inserted.get(index) ?? []),
      ...(removed.has(index) || moved.has(index) ? [] : [step]),
    ]),
  );
};
