import type { Communicator } from "@skein/tensor-core";
import { RanksDifferError } from "./errors.ts";

/**
 * Settings that must be equal on all ranks of a world: human-readable values by name. Examples are the build of the
 * kernels and the order of sums.
 */
export type Facts = { readonly [name: string]: string };

/**
 * Checks that all ranks have the same settings.
 *
 * @param ranks settings of each rank, in rank order.
 * @throws RanksDifferError with the name of the first setting that differs, both values and their ranks. All ranks
 * throw the same error.
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
 * Compares settings between all ranks of a communicator's world. All ranks must call this function at the same point of
 * the program.
 *
 * @throws RanksDifferError if the settings of two ranks differ.
 */
export const agreeOnFacts = async (group: Communicator, facts: Facts): Promise<void> =>
  requireSameFacts(
    (await group.exchangeTexts(JSON.stringify(facts))).map((text) => JSON.parse(text) as Facts),
    group.members[group.rank]!,
  );
