import { bytesPerElement, type DType, NdArray, type Reduction } from "@skein/tensor-core";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import { costOfRounds } from "../src/cost.ts";
import {
  type Algorithm,
  type ScheduleParameters,
  type CollectiveSchedule,
  type ScheduleCost,
  separateHosts,
} from "../src/schedule.ts";
import type { Transport } from "../src/transport/transport.ts";

/**
 * Returns the number of elements of one rank's input and output for `n` of the request table in `CollectiveRequest`.
 */
export const regionElements = (
  kind: CollectiveKind,
  worldSize: number,
  n: number,
): { input: number; output: number } => {
  switch (kind) {
    case "reduce-scatter":
      return { input: worldSize * n, output: n };
    case "all-gather":
      return { input: n, output: worldSize * n };
    case "all-to-all":
      return { input: worldSize * n, output: worldSize * n };
    case "barrier":
      return { input: 0, output: 0 };
    default:
      return { input: n, output: n };
  }
};

/**
 * Returns small integers that are exact in every dtype even after a sum over 16 ranks, and that differ between ranks
 * and positions.
 */
export const operand = (rank: number, count: number, dtype: DType): number[] => {
  const least = dtype === "u32" || dtype === "u8" || dtype === "bool" ? 0 : 6;
  const values: number[] = [];
  for (let i = 0; i < count; i++) {
    const value = ((i * 7 + rank * 5 + Math.floor(i / 11)) % 13) - least;
    values.push(dtype === "bool" ? value & 1 : value);
  }
  return values;
};

export const toBytes = (values: number[], dtype: DType): Uint8Array =>
  dtype === "f32"
    ? new Uint8Array(Float32Array.from(values).buffer)
    : NdArray.from(values, [values.length], dtype).bytes();

export const fromBytes = (bytes: Uint8Array, dtype: DType): number[] => {
  const aligned = bytes.slice();
  const array = NdArray.zeros(dtype, [aligned.byteLength / bytesPerElement[dtype]]);
  array.bytes().set(aligned);
  return array.toNumbers();
};

/** Returns the expected output of rank `rank`, computed without any algorithm. */
export const closedForm = (
  kind: CollectiveKind,
  parameters: ScheduleParameters,
  inputs: readonly (readonly number[])[],
  reduction: Reduction = "sum",
): number[] => {
  const { rank, elementCount: n, root = 0, from } = parameters;
  const fold = (i: number): number => {
    const column = inputs.map((values) => values[i]!);
    return reduction === "sum"
      ? column.reduce((sum, value) => sum + value, 0)
      : reduction === "max"
        ? Math.max(...column)
        : Math.min(...column);
  };
  const indices = Array.from({ length: n }, (_, i) => i);
  switch (kind) {
    case "all-reduce":
      return indices.map(fold);
    case "reduce-scatter":
      return indices.map((i) => fold(rank * n + i));
    case "all-gather":
      return inputs.flat();
    case "all-to-all":
      return inputs.flatMap((values) => values.slice(rank * n, (rank + 1) * n));
    case "broadcast":
      return [...inputs[root]!];
    case "reduce":
      return indices.map((i) => (rank === root ? fold(i) : 0));
    case "send-receive":
      return from === undefined ? indices.map(() => 0) : [...inputs[from]!];
    case "barrier":
      return [];
  }
};

/** Returns the parameters of a rank's schedule. The peers of a send-receive form a ring; other kinds ignore them. */
export const parametersOf = (rank: number, worldSize: number, elementCount: number, root = 0): ScheduleParameters => ({
  rank,
  worldSize,
  elementCount,
  root,
  to: (rank + 1) % worldSize,
  from: (rank + worldSize - 1) % worldSize,
});

/**
 * Returns the sends or the receives of all ranks, in a fixed order. Each send has a matching receive if the lists of
 * sends and receives are equal.
 */
export const messageEnds = (schedules: readonly CollectiveSchedule[], action: "send" | "receive"): string[] =>
  schedules
    .flatMap((schedule, rank) =>
      schedule.rounds.flatMap((steps, round) =>
        steps.flatMap((step) => {
          if (step.action !== action) return [];
          const [from, to, count] =
            step.action === "send" ? [rank, step.peer, step.source.count] : [step.peer, rank, step.target.count];
          return [`round ${round}: ${from} to ${to}, ${count} elements`];
        }),
      ),
    )
    .sort();

/**
 * Returns distributions of ranks over hosts, by name. The cost formulas are valid for hosts of equal size in any order.
 */
export const hostShapes = (worldSize: number): Record<string, number[][]> => {
  const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
  const cut = (...sizes: number[]): number[][] => {
    const hosts: number[][] = [];
    for (let begin = 0, i = 0; begin < worldSize; i++) {
      const size = sizes[i % sizes.length]!;
      hosts.push(ranks.slice(begin, begin + size));
      begin += size;
    }
    return hosts;
  };
  const roundRobin = (count: number): number[][] =>
    Array.from({ length: Math.min(count, worldSize) }, (_, host) => ranks.filter((rank) => rank % count === host));
  return {
    "all alone": separateHosts(worldSize),
    "one host": [ranks],
    "pairs and the rest": cut(2),
    "hosts of 3, 1 and 2": cut(3, 1, 2),
    "hosts of 4 and 3": cut(4, 3),
    "dealt out to 3 hosts": roundRobin(3),
    "the last rank with the first": worldSize > 2 ? [[0, worldSize - 1], ranks.slice(1, -1)] : [ranks],
  };
};

/** Returns the cost of the schedules of all ranks, counted step by step. */
export const countedCost = (
  schedules: readonly CollectiveSchedule[],
  hosts: number[][],
  bytesPerElement: number,
): ScheduleCost => {
  const rounds = Array.from(
    { length: Math.max(...schedules.map((schedule) => schedule.rounds.length)) },
    (_, round) => ({
      sends: (rank: number) => {
        const sent = new Map<number, number>();
        return schedules[rank]!.rounds[round]!.flatMap((step) => {
          if (step.action !== "send") return [];
          // Index of the message among the messages from this rank to the peer in this round.
          const nth = sent.get(step.peer) ?? 0;
          sent.set(step.peer, nth + 1);
          const there = schedules[step.peer]!;
          const receives = there.rounds[round]!.filter((other) => other.action === "receive" && other.peer === rank);
          const receive = receives[nth];
          const folds = there.rounds.some((steps) => steps.some(({ action }) => action === "fold"));
          const summed = receive?.action === "receive" && (receive.combine === "reduce" || folds);
          return [{ peer: step.peer, bytes: step.source.count * bytesPerElement, summed }];
        });
      },
    }),
  );
  return costOfRounds({ worldSize: schedules.length, hosts }, rounds);
};

export const schedulesOf = (
  algorithm: Algorithm,
  worldSize: number,
  elementCount: number,
  more: Partial<ScheduleParameters> = {},
): CollectiveSchedule[] =>
  Array.from({ length: worldSize }, (_, rank) =>
    algorithm.schedule({ ...parametersOf(rank, worldSize, elementCount), ...more }),
  );

/** Returns a transport that receives into given memory, as networks do. */
export const receivingInto = (transport: Transport): Transport => ({
  ...transport,
  receiveInto: async (peer, tag, target) => {
    target.set((await transport.receive(peer, tag, target.byteLength)) as Uint8Array);
    transport.release(peer);
  },
});

/**
 * Returns a transport on which a rank is at most `slots` messages ahead of a peer. If all slots are in use, `send`
 * waits until a message is released.
 */
export const withSlots = (transport: Transport, slots: number): Transport => {
  const sent = new Map<number, number>();
  return {
    ...transport,
    send: async (peer, tag, bytes) => {
      const count = (sent.get(peer) ?? 0) + 1;
      sent.set(peer, count);
      if (count > slots) await (transport.whenSent({ peer, count: count - slots }) as Promise<void> | undefined);
      return await (transport.send(peer, tag, bytes) as { peer: number; count: number });
    },
  };
};

/** Whether an algorithm's schedules depend on hosts. */
export const dependsOnHosts = ({ name }: Algorithm): boolean =>
  ["two-level-all-reduce", "masters-all-reduce", "chain-all-reduce", "two-level-all-to-all"].includes(name);

/**
 * Returns the expected outputs of the job "ragged" on rank `to`: rows and row counts by sender, for the all-to-all and
 * the all-gather.
 */
export const raggedAnswer = (to: number, worldSize: number, capacity: number, rowElements: number): number[][] => {
  const n = capacity * rowElements;
  const ranks = Array.from({ length: worldSize }, (_, from) => from);
  const exchanged = ranks.map((from) => (from + 3 * to) % (capacity + 1));
  const gathered = ranks.map((from) => from % (capacity + 1));
  const chunk = (from: number, begin: number, length: number, rows: number): number[] =>
    operand(from, length, "f32")
      .slice(begin, begin + n)
      .map((value, i) => (i < rows * rowElements ? value : 0));
  return [
    ranks.flatMap((from) => chunk(from, to * n, worldSize * n, exchanged[from]!)),
    exchanged,
    ranks.flatMap((from) => chunk(from, 0, n, gathered[from]!)),
    gathered,
  ];
};
