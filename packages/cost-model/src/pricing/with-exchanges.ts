import { checkGroups, exchangeSteps } from "./exchange-steps.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import { moveWaitsToStarts } from "./rebucket.ts";
import { exchangeOfBucket, type PricedExchange } from "./priced-exchange.ts";
import type { StepProgram } from "./step-program.ts";

/** Buckets of a program that are exchanged together, with the steps of this exchange and their predicted times. */
export interface GroupExchange {
  readonly buckets: readonly number[];
  readonly exchange: PricedExchange;
  /** Priority of the group's messages. Default: 0. */
  readonly priority?: number | undefined;
}

/**
 * Converts a step that exchanges each gradient separately, dense and during computation, into a step that exchanges
 * groups of gradients as given. A group's first messages are sent when its last gradient is ready. Further messages are
 * sent, and kernels that do not depend on messages run, after all gradients are ready. The step waits for a group when
 * its first result is needed. Without overlap, exchanges follow one another after all gradients are ready.
 *
 * Not modeled: fusion of an exchange's kernels with kernels of the model or the optimizer, except the kernel that reads
 * the mean.
 *
 * Cost: O(nodes).
 *
 * @throws ArgumentError if the groups do not contain every bucket exactly once, or if exchanges of the program have
 * several messages.
 */
export const withExchanges = (
  program: StepProgram,
  groups: readonly GroupExchange[],
  overlap: "wait-free" | "none",
): StepProgram => {
  const exchanges = exchangeSteps(program);
  checkGroups(
    groups.map(({ buckets }) => buckets),
    exchanges.keys(),
  );
  const all = [...exchanges.values()];
  const removed = new Set(all.flatMap(({ encode, start, wait, decode }) => [...encode, start, wait, ...decode]));
  const steps = freeSteps(program);
  const inserted = new Map<number, FreeStep[]>();
  const insert = (index: number, added: readonly FreeStep[]): void => {
    const existing = inserted.get(index);
    if (existing === undefined) inserted.set(index, [...added]);
    else existing.push(...added);
  };
  const [lastStart, firstWait] = [Math.max(...all.map(({ start }) => start)), Math.min(...all.map(({ wait }) => wait))];
  const own = groups.map(({ buckets, exchange, priority = 0 }) => {
    const mine = buckets.map((bucket) => exchanges.get(bucket)!);
    return {
      ...exchangeOfBucket(exchange, buckets[0]!, priority),
      readyAt: Math.max(...mine.map(({ start }) => start)),
      neededAt: Math.min(...mine.map(({ wait }) => wait)),
    };
  });
  if (overlap === "none")
    for (const { rounds, independent, after } of own) insert(firstWait, [...rounds.flat(), ...after, ...independent]);
  else {
    for (const { rounds, readyAt } of own) insert(readyAt, rounds[0]!);
    const numRounds = Math.max(...own.map(({ rounds }) => rounds.length));
    for (let round = 1; round < numRounds; round++)
      for (const { rounds } of own) insert(lastStart, rounds[round] ?? []);
    for (const { independent } of own) insert(firstWait, independent);
    for (const { after, neededAt } of own) insert(neededAt, after);
  }
  const moved = overlap === "none" ? moveWaitsToStarts(steps, removed, insert) : new Set<number>();
  return linkedSteps(
    steps.flatMap((step, index) => [
      ...(inserted.get(index) ?? []),
      ...(removed.has(index) || moved.has(index) ? [] : [step]),
    ]),
  );
};
