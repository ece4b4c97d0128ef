import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { CollectiveRequest } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runWalk } from "../src/execute.ts";
import { plainArithmetic } from "../src/plain-arithmetic.ts";
import { walkRagged } from "../src/ragged.ts";
import {
  raggedAllGatherSchedule,
  raggedExchange,
  type RaggedParameters,
  raggedAllToAllSchedule,
  rowCountSchedule,
} from "../src/ragged-schedule.ts";
import { type ScheduleCost, sentElements } from "../src/schedule.ts";
import { ControlBlock } from "../src/control-block/control-block.ts";
import { controlBytes } from "../src/control-block/layout.ts";
import { createMemoryWorld } from "../src/transport/memory-transport.ts";
import { ThreadTransport } from "../src/transport/thread-transport.ts";
import type { Future, Transport } from "../src/transport/transport.ts";
import { countedCost, fromBytes, messageEnds, operand, toBytes } from "./world.ts";

type Kind = "all-to-all" | "all-gather";

interface Setting {
  readonly kind: Kind;
  readonly worldSize: number;
  readonly capacity: number;
  readonly rowElements: number;
  readonly dtype: DType;
  /** Row counts [sender][receiver]; one entry per sender if all receivers get the same count. */
  readonly rows: readonly (readonly number[])[];
}

const worldSizes = Array.from({ length: 16 }, (_, i) => i + 1);
const countsOf = (kind: Kind, worldSize: number, count: (from: number, to: number) => number): number[][] =>
  Array.from({ length: worldSize }, (_, from) =>
    Array.from({ length: kind === "all-to-all" ? worldSize : 1 }, (_, to) => count(from, to)),
  );
const countFor = (rows: readonly number[], to: number): number => rows[rows.length === 1 ? 0 : to]!;
const i32 = (...numbers: number[]): Uint8Array => new Uint8Array(Int32Array.from(numbers).buffer);

/** Copies bytes to memory that the ranks share. Returns the copied bytes. */
type CopyIn = (bytes: Uint8Array) => Uint8Array;

const requestOf = (setting: Setting, rank: number, copyIn: CopyIn = (bytes) => bytes): CollectiveRequest => {
  const { kind, worldSize, capacity, rowElements, dtype, rows } = setting;
  const count = rows[rank]!.length * capacity * rowElements;
  return {
    kind,
    dtype,
    input: copyIn(toBytes(operand(rank, count, dtype), dtype)),
    // Neither zeros nor any sent value, so that unwritten elements are detected.
    output: copyIn(new Uint8Array(worldSize * capacity * rowElements * bytesPerElement[dtype]).fill(0x55)),
    ragged: {
      capacity,
      rows: copyIn(i32(...rows[rank]!)),
      receivedRows: copyIn(new Uint8Array(4 * worldSize).fill(0x55)),
    },
  };
};

/** Returns the expected result of rank `to`, row by row. */
const closedForm = ({ capacity, rowElements, dtype, rows }: Setting, to: number): number[] =>
  rows.flatMap((own, from) => {
    const x = operand(from, own.length * capacity * rowElements, dtype);
    const begin = (own.length === 1 ? 0 : to) * capacity * rowElements;
    const valid = countFor(own, to) * rowElements;
    return Array.from({ length: capacity * rowElements }, (_, i) => (i < valid ? x[begin + i]! : 0));
  });

/** Returns a network transport that receives messages directly into their destination. */
const landing = (transport: Transport): Transport => ({
  ...transport,
  receiveInto: async (peer, tag, target) => {
    const bytes = (await transport.receive(peer, tag, target.byteLength)) as Uint8Array;
    target.set(bytes);
    transport.release(peer);
  },
});

/** Returns a transport that counts the bytes sent by a rank. */
const counting = (transport: Transport): { transport: Transport; sent: number[] } => {
  const sent: number[] = [];
  return {
    sent,
    transport: {
      ...transport,
      send: (peer, tag, bytes) => {
        sent.push(bytes.byteLength);
        return transport.send(peer, tag, bytes);
      },
    },
  };
};

interface World {
  readonly transports: readonly Transport[];
  readonly copyIn?: CopyIn;
}

/**
 * Creates a world that uses the transport between threads. Its ranks run in turns in one thread, and messages are
 * addresses in one memory.
 */
const mailboxes = (worldSize: number): World => {
  const control = new SharedArrayBuffer(controlBytes(worldSize));
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 4, shared: true });
  const localRanks = Array.from({ length: worldSize }, (_, rank) => rank);
  const rest = {
    control,
    memory,
    kernels: "none",
    worldSize,
    localRanks,
    companionOnly: false,
    timeoutMilliseconds: 1000,
    spins: 0,
  } as const;
  let end = 0;
  return {
    transports: localRanks.map((rank) => {
      const transport = new ThreadTransport(new ControlBlock({ ...rest, rank, preference: {} }), memory);
      return {
        rank,
        worldSize,
        sharesMemoryWith: () => true,
        send: (peer, tag, bytes) => transport.send(peer, tag, bytes),
        receive: (peer, tag, byteLength) => transport.receive(peer, tag, byteLength),
        release: (peer) => transport.release(peer),
        whenSent: (handle) => transport.whenSent(handle),
      };
    }),
    copyIn: (bytes) => {
      const region = new Uint8Array(memory.buffer, end, bytes.byteLength);
      end = Math.ceil((end + bytes.byteLength) / 16) * 16;
      region.set(bytes);
      return region;
    },
  };
};

const worlds: { readonly [name: string]: (worldSize: number) => World } = {
  "sender's own memory": (worldSize) => ({ transports: createMemoryWorld(worldSize, { sharesMemory: true }) }),
  copies: (worldSize) => ({ transports: createMemoryWorld(worldSize) }),
  "copies that land in place": (worldSize) => ({ transports: createMemoryWorld(worldSize).map(landing) }),
  "threads' mailboxes": mailboxes,
};

/** Lets the other ranks of this thread continue. Fails if a rank waits forever. */
const takeTurns = async (future: Future<unknown>): Promise<void> => {
  for (let turn = 0; !future.ready(); turn++) {
    if (turn === 10_000) future.expire();
    await undefined;
  }
};

const check = async (setting: Setting, { transports, copyIn }: World): Promise<void> => {
  const { worldSize, rows, rowElements, dtype } = setting;
  const requests = transports.map((_, rank) => requestOf(setting, rank, copyIn));
  const before = requests.map(({ input }) => input.slice());
  const counted = transports.map(counting);
  const returned = await Promise.all(
    counted.map(({ transport }, rank) =>
      runWalk(walkRagged(requests[rank]!, 7, transport, plainArithmetic()), takeTurns),
    ),
  );
  requests.forEach(({ input, output, ragged }, rank) => {
    expect(fromBytes(output, dtype), `rank ${rank}`).toEqual(closedForm(setting, rank));
    expect(fromBytes(ragged!.receivedRows, "i32")).toEqual(rows.map((own) => countFor(own, rank)));
    expect([input.slice(), ragged!.rows.slice()], "operands are left as they were").toEqual([
      before[rank],
      i32(...rows[rank]!),
    ]);
    const others = Array.from({ length: worldSize }, (_, to) => to).filter((to) => to !== rank);
    const valid = others.reduce((sum, to) => sum + countFor(rows[rank]!, to), 0) * rowElements * bytesPerElement[dtype];
    expect(returned[rank], "what the walk says that it sent").toBe(valid + 4 * (worldSize - 1));
    expect(
      counted[rank]!.sent.reduce((sum, bytes) => sum + bytes, 0),
      "its sent bytes",
    ).toBe(returned[rank]);
  });
};

describe.each(["all-to-all", "all-gather"] as const)("ragged %s", (kind) => {
  describe.each(Object.entries(worlds))("over %s", (_, world) => {
    test.each(worldSizes)("equals the closed form on %i ranks, and sends only the counted rows", async (worldSize) => {
      const base = { kind, worldSize, capacity: 5, rowElements: 3, dtype: "f32" } as const;
      for (const rows of [
        countsOf(kind, worldSize, () => 0),
        countsOf(kind, worldSize, () => 5),
        countsOf(kind, worldSize, (from, to) => (from * 7 + to * 3) % 6),
        countsOf(kind, worldSize, (from) => (from === worldSize - 1 ? 5 : 0)), // all from one rank
        countsOf(kind, worldSize, (_, to) => (to === 0 ? 4 : 0)), // all to one rank
      ])
        await check({ ...base, rows }, world(worldSize));
    });

    test("any counts, capacity, row length and dtype", async () => {
      const setting = fc
        .record({
          worldSize: fc.integer({ min: 1, max: 9 }),
          capacity: fc.integer({ min: 0, max: 6 }),
          rowElements: fc.integer({ min: 0, max: 5 }),
          dtype: fc.constantFrom<DType>("f32", "f16", "bf16", "i32", "u32", "u8", "bool"),
          seed: fc.array(fc.nat(1000), { minLength: 81, maxLength: 81 }),
        })
        .map(
          ({ seed, ...rest }): Setting => ({
            ...rest,
            kind,
            rows: countsOf(kind, rest.worldSize, (from, to) => seed[from * 9 + to]! % (rest.capacity + 1)),
          }),
        );
      await fc.assert(fc.asyncProperty(setting, (one) => check(one, world(one.worldSize))));
    });
  });

  test.each([-1, 4, 2 ** 31 - 1, -(2 ** 31)])(
    "a rank that is to send %i of 3 rows throws, and sends nothing",
    async (count) => {
      const rows = countsOf(kind, 3, () => 1);
      rows[1]![rows[1]!.length - 1] = count;
      const { transport, sent } = counting(createMemoryWorld(3)[1]!);
      const request = requestOf({ kind, worldSize: 3, capacity: 3, rowElements: 1, dtype: "f32", rows }, 1);
      await expect(runWalk(walkRagged(request, 7, transport, plainArithmetic()))).rejects.toMatchObject({
        kind: "user",
        code: "argument",
        message: expect.stringMatching(`rank 1 is asked to send ${count} rows.*, but its chunks have 3`),
      });
      expect(sent).toEqual([]);
    },
  );

  test.each([-1, 4, 2 ** 31 - 1, -(2 ** 31)])(
    "a peer that announces %i rows for chunks of 3 is named in the error, and nothing is written",
    async (count) => {
      const [own, liar] = createMemoryWorld(2) as [Transport, Transport];
      const request = requestOf(
        { kind, worldSize: 2, capacity: 3, rowElements: 1, dtype: "f32", rows: countsOf(kind, 2, () => 2) },
        0,
      );
      void liar.send(0, 7, i32(count));
      await expect(runWalk(walkRagged(request, 7, own, plainArithmetic()))).rejects.toMatchObject({
        code: "ranks-disagree",
        rank: 0,
        peer: 1,
        message: expect.stringMatching(
          `rank 1 announces ${count} rows for rank 0, whose chunks have room for 3; all ranks must`,
        ),
      });
      expect(request.output.every((byte) => byte === 0x55)).toBe(true);
    },
  );

  // A consistent message for chunks of another size: its row count may be valid here, but its length is not.
  test("ranks with rows of different lengths get an error", async () => {
    const world = createMemoryWorld(2);
    const rows = countsOf(kind, 2, () => 2);
    const results = await Promise.allSettled(
      world.map((transport, rank) =>
        runWalk(
          walkRagged(
            requestOf({ kind, worldSize: 2, capacity: 3, rowElements: 1 + rank, dtype: "f32", rows }, rank),
            7,
            transport,
            plainArithmetic(),
          ),
        ),
      ),
    );
    expect(
      results.map((result) => (result.status === "rejected" ? (result.reason as { code: string }).code : "fulfilled")),
    ).toContain("ranks-disagree");
  });

  test.each([2, 3, 7])(
    "each send of the schedules has a matching receive on %i ranks in the same round",
    (worldSize) => {
      const rows = countsOf(kind, worldSize, (from, to) => (from + 2 * to) % 4);
      const parameters = rows.map(
        (sent, rank): RaggedParameters => ({
          rank,
          worldSize,
          capacity: 3,
          rowElements: 2,
          sent,
          received: rows.map((own) => countFor(own, rank)),
        }),
      );
      for (const schedule of [
        rowCountSchedule,
        kind === "all-to-all" ? raggedAllToAllSchedule : raggedAllGatherSchedule,
      ]) {
        const schedules = parameters.map(schedule);
        expect(messageEnds(schedules, "send")).toEqual(messageEnds(schedules, "receive"));
        expect(messageEnds(schedules, "send").length).toBeGreaterThan(0);
      }
      expect(parameters.map((rank) => sentElements(rowCountSchedule(rank)))).toEqual(rows.map(() => worldSize - 1));
    },
  );

  test.each([2, 3, 7])(
    "the cost is that of full chunks on %i ranks: a round of counts, then one for each peer",
    (worldSize) => {
      const [capacity, rowElements] = [3, 2];
      const rows = countsOf(kind, worldSize, () => capacity);
      const parameters = rows.map(
        (sent, rank): RaggedParameters => ({
          rank,
          worldSize,
          capacity,
          rowElements,
          sent,
          received: rows.map((own) => countFor(own, rank)),
        }),
      );
      const hosts = Array.from({ length: worldSize }, (_, rank) => [rank]);
      const schedules = parameters.map(kind === "all-to-all" ? raggedAllToAllSchedule : raggedAllGatherSchedule);
      // The last round of the row exchange only copies within a rank.
      const [counts, full] = [parameters.map(rowCountSchedule), schedules].map((all) => countedCost(all, hosts, 4)) as [
        ScheduleCost,
        ScheduleCost,
      ];
      const said = raggedExchange.cost({ worldSize, byteLength: 4 * worldSize * capacity * rowElements });
      expect(said.rounds).toBe(counts.rounds + full.rounds);
      expect(said.messages).toBe(counts.messages + full.messages);
      expect(said.bytes).toBe(counts.bytes + full.bytes);
      expect(said.path.across).toEqual({
        messages: counts.path.across.messages + full.path.across.messages,
        bytes: counts.path.across.bytes + full.path.across.bytes,
      });
    },
  );

  test("lent memory is not written while one rank is late", async () => {
    const worldSize = 4;
    const setting: Setting = {
      kind,
      worldSize,
      capacity: 3,
      rowElements: 2,
      dtype: "f32",
      rows: countsOf(kind, worldSize, (from, to) => (from + to) % 4),
    };
    for (let slow = 0; slow < worldSize; slow++) {
      const outputs = await Promise.all(
        createMemoryWorld(worldSize, { sharesMemory: true }).map(async (transport, rank) => {
          const late: Transport = {
            ...transport,
            receive: async (peer, tag, byteLength) => {
              for (let turn = 0; turn < 200; turn++) await undefined;
              return (await transport.receive(peer, tag, byteLength)) as Uint8Array;
            },
          };
          const request = requestOf(setting, rank);
          await runWalk(walkRagged(request, 7, rank === slow ? late : transport, plainArithmetic()));
          const result = fromBytes(request.output, "f32");
          // Regions of a completed request may be reused.
          for (const region of [request.input, request.output, request.ragged!.rows]) region.fill(0x7f);
          return result;
        }),
      );
      outputs.forEach((output, rank) =>
        expect(output, `rank ${rank}, late rank ${slow}`).toEqual(closedForm(setting, rank)),
      );
    }
  });
});
