import { costOfRounds, type Message } from "../cost.ts";
import { embed } from "../embed.ts";
import { segmented } from "../interleave.ts";
import { type Algorithm, chunkOf, modulo, type Step, withoutEmpty } from "../schedule.ts";
import { nearlySquare } from "../topology.ts";
import { ringAllReduce } from "./ring-all-reduce.ts";

/**
 * All-reduce on a torus of X columns and Y rows, P = X · Y, as nearly square as P allows: a ring reduce-scatter along
 * rows, a ring all-reduce of one chunk along columns, then a ring all-gather along rows. If P is prime, the torus has
 * one row and is a ring.
 *
 * Cost: 2(X − 1) + 2(Y − 1) rounds of one message; 2(P − 1) / P · S bytes per rank, as in a ring. Source: Mikami et
 * al., "Massively distributed SGD: ImageNet/ResNet-50 training in a flash", 2018.
 * @example
 * ```ts
 * const { rounds } = torusAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8, hosts: [[0, 1], [2, 3]] });
 * console.log(rounds.length); // 4
 * ```
 */
export const torusAllReduce: Algorithm = segmented({
  name: "torus-all-reduce",
  kind: "all-reduce",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount }) => {
    const [columns, rows] = nearlySquare(worldSize);
    const [x, y] = [rank % columns, Math.floor(rank / columns)];
    const row = Array.from({ length: columns }, (_, column) => y * columns + column);
    const column = Array.from({ length: rows }, (_, index) => index * columns + x);
    const alongRow = embed(ringAllReduce.schedule({ rank: x, worldSize: columns, elementCount }).rounds, {}, row);
    if (rows === 1) return { algorithm: "torus-all-reduce", scratchElements: 0, rounds: withoutEmpty(alongRow) };
    // The chunk that a rank owns after the reduce-scatter phase of the ring along its row.
    const [offset, count] = chunkOf(elementCount, columns, modulo(x + 1, columns));
    const base = { region: "output", offset } as const;
    const alongColumn = embed(
      ringAllReduce.schedule({ rank: y, worldSize: rows, elementCount: count }).rounds,
      { input: base, output: base },
      column,
    );
    const rounds: Step[][] = [...alongRow.slice(0, columns - 1), ...alongColumn, ...alongRow.slice(columns - 1)];
    return { algorithm: "torus-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    const [columns, rows] = nearlySquare(worldSize);
    const alongRow = (summed: boolean) => ({
      times: columns - 1,
      sends: (rank: number): Message[] => {
        const x = rank % columns;
        return [{ peer: rank - x + ((x + 1) % columns), bytes: byteLength / columns, summed }];
      },
    });
    const alongColumn = (summed: boolean) => ({
      times: rows - 1,
      sends: (rank: number): Message[] => [
        { peer: (rank + columns) % worldSize, bytes: byteLength / worldSize, summed },
      ],
    });
    return costOfRounds(parameters, [alongRow(true), alongColumn(true), alongColumn(false), alongRow(false)]);
  },
});
