import { costOfRounds } from "../cost.ts";
import { type Algorithm, input, output, type Step, withoutEmpty } from "../schedule.ts";

/**
 * Point-to-point messages: sends to rank `to` and receives from rank `from`. Each of the two ranks is optional; a rank
 * without `from` receives zeros.
 *
 * Cost: 1 round of one message, S bytes.
 * @example
 * ```ts
 * const { rounds } = directSendReceive.schedule({ rank: 0, worldSize: 4, elementCount: 8, to: 1, from: 3 });
 * console.log(rounds.length); // 1
 * ```
 */
export const directSendReceive: Algorithm = {
  name: "send-receive",
  kind: "send-receive",
  rankOrder: true,
  schedule: ({ rank, elementCount, to, from }) => {
    const operand = input(0, elementCount);
    const target = output(0, elementCount);
    const steps: Step[] = [];
    if (from === undefined) steps.push({ action: "clear", target });
    if (to !== undefined)
      steps.push(
        to === rank ? { action: "copy", source: operand, target } : { action: "send", peer: to, source: operand },
      );
    if (from !== undefined && from !== rank) steps.push({ action: "receive", combine: "replace", peer: from, target });
    return { algorithm: "send-receive", scratchElements: 0, rounds: withoutEmpty([steps]) };
  },
  // Ranks do not know the destinations of other ranks. The cost assumes that each rank sends to the next rank of a
  // ring.
  cost: (parameters) => {
    const { worldSize, byteLength: bytes } = parameters;
    return costOfRounds(parameters, [
      { sends: (rank) => (worldSize === 1 ? [] : [{ peer: (rank + 1) % worldSize, bytes }]) },
    ]);
  },
};
