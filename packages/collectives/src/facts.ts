import type { Communicator } from "@skein/tensor-core";
import { RanksDifferError } from "./errors.ts";

/**
 * What must be the same on all ranks of a world, by name, in words for people: the build of the kernels, what sums are
 * ordered by.
 */
export type Facts = { readonly [name: string]: string };

/**
 * Check that all ranks have the same facts.
 *
 * @param ranks the facts of each rank.
 * @throws RanksDifferError that names the first fact that differs, both values, and who has which. On all ranks alike.
 */
export const requireSameFacts = (ranks: readonly Facts[], rank: number): void => {
  const [first, ...rest] = ranks;
  const names = new Set([first!, ...rest].flatMap((facts) => Object.keys(facts)));
  for (const name of names) {
    const valueOf = (facts: Facts): string => facts[name] ?? "none";
    const others = rest
      .map((facts, i) => ({ peer: i + 1, value: valueOf(facts) }))
      .filter(({ value }) => value !== valueOf(first!));
    if (others.length === 0) continue;
    const [{ value, peer }] = others as [(typeof others)[number], ...typeof others];
    const alike = others.filter((other) => other.value === value).map((other) => other.peer);
    throw new RanksDifferError(
      { rank, peer: rank === peer ? 0 : peer },
      name,
      { value, ranks: alike },
      valueOf(first!),
    );
  }
};

/**
 * Compare facts between all ranks of a communicator's world, each of which calls it at the same place.
 *
 * @throws RanksDifferError.
 */
export const agreeOnFacts = async (group: Communicator, facts: Facts): Promise<void> =>
  requireSameFacts(
    (await group.exchangeTexts(JSON.stringify(facts))).map((text) => JSON.parse(text) as Facts),
    group.members[group.rank]!,
  );
