import { costOfRounds, type MessageRound } from "../cost.ts";
import { embed } from "../embed.ts";
import { type Algorithm, chunkOf, type ElementRange, input, output, type Step, withoutEmpty } from "../schedule.ts";
import { gatherMessages, gatherRounds, positionsOf } from "./binomial-tree.ts";
import { halvingMessages, halvingRounds } from "./recursive-halving.ts";

/**
 * Reduce of a large vector: a reduce-scatter by recursive halving, then a binomial gather at the root. Positions are
 * distances from the root modulo P. Not segmented: ranks send different amounts in the gather, so two segments would
 * use the same link in the same round.
 *
 * Cost: 2⌈log₂P⌉ rounds. With Q = 2^⌊log₂P⌋ the busiest rank sends ⌈log₂P⌉ + 1 messages, (P − 1 + max(P − Q, Q / 2)) /
 * P · S bytes; 2(P − 1) / P · S along the critical path. Needs no scratch memory. Source: Rabenseifner, "Optimization
 * of collective reduction operations", 2004; in contrast to this source, groups of any size are split, into uneven
 * halves if necessary.
 * @example
 * ```ts
 * const { rounds } = halvingReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 5
 * ```
 */
export const halvingReduce: Algorithm = {
  name: "halving-reduce",
  kind: "reduce",
  rankOrder: false,
  schedule: ({ elementCount, ...parameters }) => {
    const { worldSize } = parameters;
    const { position, rankAt } = positionsOf(parameters);
    const whole = output(0, elementCount);
    const chunks = (of: (offset: number, count: number) => ElementRange, from: number, to: number): ElementRange => {
      const begin = chunkOf(elementCount, worldSize, from)[0];
      return of(begin, Math.floor((to * elementCount) / worldSize) - begin);
    };
    const halvings = halvingRounds(
      position,
      worldSize,
      ([from, to]) => chunks(input, from, to),
      ([from, to]) => chunks(output, from, to),
    );
    const atRoot: Step[] = worldSize === 1 ? [{ action: "copy", source: input(0, elementCount), target: whole }] : [];
    const rounds: Step[][] = [
      ...embed(
        halvings,
        {},
        Array.from({ length: worldSize }, (_, other) => rankAt(other)),
      ),
      ...gatherRounds(parameters, (first, count) => chunks(output, first, first + count)),
      position === 0 ? atRoot : [{ action: "clear", target: whole }],
    ];
    return { algorithm: "halving-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    const bytes = byteLength / worldSize;
    const halvings = halvingMessages(worldSize, bytes).map(
      ({ sends }): MessageRound => ({
        sends: (rank) => {
          const { position, rankAt } = positionsOf({ ...parameters, rank });
          return sends(position).map((message) => ({ ...message, peer: rankAt(message.peer) }));
        },
      }),
    );
    return costOfRounds(parameters, [...halvings, ...gatherMessages(parameters, bytes)]);
  },
};
