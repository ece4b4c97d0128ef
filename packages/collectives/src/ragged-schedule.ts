import { costOfRounds, peersOf } from "./cost.ts";
import {
  type Algorithm,
  type ElementRange,
  input,
  modulo,
  output,
  type CollectiveSchedule,
  type Step,
  withoutEmpty,
} from "./schedule.ts";

/**
 * Parameters of a ragged schedule, in which ranks send different numbers of rows: the rank, the world size and the row
 * counts of one request.
 */
export interface RaggedParameters {
  readonly rank: number;
  readonly worldSize: number;
  /** Maximum number of rows per chunk. */
  readonly capacity: number;
  /** Number of elements per row. */
  readonly rowElements: number;
  /**
   * Row counts to send. All-to-all: one row count per destination rank, including this rank. All-gather: a single row
   * count for all destination ranks.
   */
  readonly sent: readonly number[];
  /** Number of rows to receive from each rank, including this rank. */
  readonly received: readonly number[];
}

/**
 * Returns the schedule of a row exchange. In round k each rank sends to rank + k and receives from rank − k. The local
 * copy comes last, while messages are in flight.
 */
const exchangeRows = (
  algorithm: string,
  parameters: RaggedParameters,
  sourceFor: (peer: number) => ElementRange,
): CollectiveSchedule => {
  const { rank, worldSize, capacity, rowElements, received } = parameters;
  const chunk = capacity * rowElements;
  const came = (from: number): ElementRange => output(from * chunk, received[from]! * rowElements);
  const rounds = Array.from({ length: worldSize - 1 }, (_, round): Step[] => {
    const [to, from] = [modulo(rank + round + 1, worldSize), modulo(rank - round - 1, worldSize)];
    return [
      { action: "send", peer: to, source: sourceFor(to) },
      { action: "receive", combine: "replace", peer: from, target: came(from) },
    ];
  });
  rounds.push([
    { action: "copy", source: sourceFor(rank), target: came(rank) },
    ...received.map(
      (count, from): Step => ({
        action: "clear",
        target: output(from * chunk + count * rowElements, chunk - count * rowElements),
      }),
    ),
  ]);
  return { algorithm, scratchElements: 0, rounds: withoutEmpty(rounds) };
};

/**
 * Returns the schedule of an all-to-all that sends only valid rows, by pairwise exchange. Chunk r of the operand is for
 * rank r.
 *
 * Cost: P − 1 rounds of one message; a rank sends only the bytes of its rows for other ranks. Source: Thakur,
 * Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005.
 */
export const raggedAllToAllSchedule = (parameters: RaggedParameters): CollectiveSchedule => {
  const { capacity, rowElements, sent } = parameters;
  return exchangeRows("ragged-all-to-all", parameters, (peer) =>
    input(peer * capacity * rowElements, sent[peer]! * rowElements),
  );
};

/**
 * Returns the schedule of an all-gather that sends only valid rows. Each rank sends its own rows to every other rank.
 * Rows are not forwarded, so no rank waits for the row count of a third rank.
 *
 * Cost: P − 1 rounds of one message; a rank sends P − 1 times the bytes of its rows.
 */
export const raggedAllGatherSchedule = (parameters: RaggedParameters): CollectiveSchedule =>
  exchangeRows("ragged-all-gather", parameters, () => input(0, parameters.sent[0]! * parameters.rowElements));

/**
 * Returns the schedule that sends each rank the number of rows to expect, as i32. The schedule has only one round,
 * because the messages are small.
 *
 * Cost: 1 round of P − 1 messages, 4 (P − 1) bytes per rank.
 */
export const rowCountSchedule = ({
  rank,
  worldSize,
  sent,
}: Pick<RaggedParameters, "rank" | "worldSize" | "sent">): CollectiveSchedule => {
  const countFor = (peer: number): ElementRange => input(sent.length === 1 ? 0 : peer, 1);
  const peers = Array.from({ length: worldSize - 1 }, (_, i) => (rank + 1 + i) % worldSize);
  return {
    algorithm: "row-counts",
    scratchElements: 0,
    rounds: [
      [
        { action: "copy", source: countFor(rank), target: output(rank, 1) },
        ...peers.map((peer): Step => ({ action: "send", peer, source: countFor(peer) })),
        ...peers.map((peer): Step => ({ action: "receive", combine: "replace", peer, target: output(peer, 1) })),
      ],
    ],
  };
};

/**
 * Name and cost of a complete ragged all-gather or all-to-all: first all row counts, then all rows. The cost assumes
 * full chunks.
 */
export const raggedExchange: Pick<Algorithm, "name" | "cost"> = {
  name: "ragged",
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    return costOfRounds(parameters, [
      { sends: (rank) => peersOf(rank, worldSize).map((peer) => ({ peer, bytes: 4 })) },
      ...Array.from({ length: worldSize - 1 }, (_, round) => ({
        sends: (rank: number) => [{ peer: modulo(rank + round + 1, worldSize), bytes: byteLength / worldSize }],
      })),
    ]);
  },
};
