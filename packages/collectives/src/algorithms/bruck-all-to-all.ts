import { costOfRounds } from "../cost.ts";
import {
  type Algorithm,
  type ElementRange,
  input,
  modulo,
  output,
  scratch,
  type Step,
  withoutEmpty,
} from "../schedule.ts";

/**
 * Returns the distances, in ranks, between the origin and the destination of the blocks sent in round k. These are all
 * distances below `worldSize` with bit k set.
 */
const hopDistances = (worldSize: number, k: number): number[] =>
  Array.from({ length: worldSize }, (_, distance) => distance).filter((distance) => (distance & (2 ** k)) !== 0);

const roundCount = (worldSize: number): number => Math.ceil(Math.log2(worldSize));

/**
 * All-to-all by Bruck: a block for the rank at distance d makes one hop per set bit of d. All blocks that make the same
 * hop are sent in one message. Small blocks need few messages; each block is sent log₂P / 2 times on average.
 *
 * Cost: ⌈log₂P⌉ rounds of one message, about S / 2 bytes each for an operand of S bytes (less if P is not a power of
 * two); 2S bytes of scratch memory and 2S bytes of copies. Source: Bruck et al., "Efficient algorithms for all-to-all
 * communications in multiport message-passing systems", 1997.
 * @example
 * ```ts
 * const { rounds } = bruckAllToAll.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 3
 * ```
 */
export const bruckAllToAll: Algorithm = {
  name: "bruck-all-to-all",
  kind: "all-to-all",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount }) => {
    const block = (of: (offset: number, count: number) => ElementRange, index: number): ElementRange =>
      of(index * elementCount, elementCount);
    // Scratch memory: P blocks sorted by remaining distance, the packed outgoing blocks, and the received blocks.
    const most = Math.floor(worldSize / 2);
    const packed = (index: number): ElementRange => block(scratch, worldSize + index);
    const received = (index: number): ElementRange => block(scratch, worldSize + most + index);
    const span = (first: ElementRange, blocks: number): ElementRange => ({ ...first, count: blocks * elementCount });
    const rounds: Step[][] = [[]];
    rounds[0]!.push({ action: "copy", source: block(input, rank), target: block(output, rank) });
    for (let distance = 1; distance < worldSize; distance++)
      rounds[0]!.push({
        action: "copy",
        source: block(input, (rank + distance) % worldSize),
        target: block(scratch, distance),
      });
    for (let k = 0; k < roundCount(worldSize); k++) {
      const distances = hopDistances(worldSize, k);
      const steps = (rounds[k] ??= []);
      steps.push(
        ...distances.map(
          (distance, index): Step => ({ action: "copy", source: block(scratch, distance), target: packed(index) }),
        ),
        { action: "send", peer: modulo(rank + 2 ** k, worldSize), source: span(packed(0), distances.length) },
        {
          action: "receive",
          combine: "replace",
          peer: modulo(rank - 2 ** k, worldSize),
          target: span(received(0), distances.length),
        },
      );
      rounds.push(
        distances.map(
          (distance, index): Step => ({ action: "copy", source: received(index), target: block(scratch, distance) }),
        ),
      );
    }
    for (let distance = 1; distance < worldSize; distance++)
      rounds.at(-1)!.push({
        action: "copy",
        source: block(scratch, distance),
        target: block(output, modulo(rank - distance, worldSize)),
      });
    return {
      algorithm: "bruck-all-to-all",
      scratchElements: worldSize > 1 ? (worldSize + 2 * most) * elementCount : 0,
      rounds: withoutEmpty(rounds),
    };
  },
  cost: (parameters) =>
    costOfRounds(
      parameters,
      Array.from({ length: roundCount(parameters.worldSize) }, (_, k) => {
        const bytes = (hopDistances(parameters.worldSize, k).length * parameters.byteLength) / parameters.worldSize;
        return { sends: (rank) => [{ peer: modulo(rank + 2 ** k, parameters.worldSize), bytes }] };
      }),
    ),
};
