import { describe, expect, test } from "vitest";
import { closedForm, fromBytes, operand, parametersOf, regionElements, toBytes } from "../test/world.ts";
import { algorithms } from "./algorithms/table.ts";
import { execute, executeBlocking, scratchBytes } from "./execute.ts";
import { plainArithmetic } from "./plain-arithmetic.ts";
import { createMemoryWorld } from "./transport/memory-transport.ts";
import type { Transport } from "./transport/transport.ts";

/**
 * Returns a transport that delays every received message, so that the other ranks run as far ahead as the schedule
 * allows.
 */
const late = (transport: Transport): Transport => ({
  ...transport,
  receive: async (peer, tag, byteLength) => {
    for (let turn = 0; turn < 200; turn++) await undefined;
    return transport.receive(peer, tag, byteLength) as Uint8Array | Promise<Uint8Array>;
  },
});

// Lent memory must not change until it is released, during and after a collective, because a rank that has finished may
// reuse its buffers immediately.
describe.each(algorithms.map((algorithm) => ({ name: algorithm.name, algorithm })))(
  "$name with one late rank",
  ({ algorithm }) => {
    test.each([2, 3, 4, 7])("does not change lent memory on %i ranks", async (worldSize) => {
      const n = 12;
      const counts = regionElements(algorithm.kind, worldSize, n);
      for (let slow = 0; slow < worldSize; slow++) {
        const inputs = Array.from({ length: worldSize }, (_, rank) => operand(rank, counts.input, "f32"));
        const outputs = await Promise.all(
          createMemoryWorld(worldSize, { sharesMemory: true }).map(async (transport, rank) => {
            const parameters = parametersOf(rank, worldSize, n);
            const schedule = algorithm.schedule(parameters);
            const input = toBytes(inputs[rank]!, "f32");
            const output = new Uint8Array(counts.output * 4);
            const scratch = new Uint8Array(scratchBytes(schedule, "f32"));
            await execute(
              schedule,
              { input, output, scratch, dtype: "f32", tag: 1 },
              rank === slow ? late(transport) : transport,
              plainArithmetic(),
            );
            const result = fromBytes(output, "f32");
            for (const region of [input, output, scratch]) region.fill(0x7f);
            return result;
          }),
        );
        outputs.forEach((output, rank) =>
          expect(output, `rank ${rank}, late rank ${slow}`).toEqual(
            closedForm(algorithm.kind, parametersOf(rank, worldSize, n), inputs),
          ),
        );
      }
    });
  },
);

test("rejects a transport that returns promises if the thread blocks", () => {
  const [transport] = createMemoryWorld(2);
  const { schedule } = algorithms.find(({ name }) => name === "ring-all-reduce")!;
  const bytes = new Uint8Array(8);
  expect(() =>
    executeBlocking(
      schedule(parametersOf(0, 2, 2)),
      { input: bytes, output: bytes, dtype: "f32", tag: 1 },
      transport!,
      plainArithmetic(),
      () => {},
    ),
  ).toThrow(/a thread that blocks was given a transport that returns promises/);
});

test("throws an InvariantError for a schedule that exceeds its memory", async () => {
  const [transport] = createMemoryWorld(1);
  const { schedule } = algorithms.find(({ name }) => name === "ring-all-gather")!;
  await expect(
    execute(
      schedule(parametersOf(0, 1, 4)),
      { input: new Uint8Array(16), output: new Uint8Array(8), dtype: "f32", tag: 1 },
      transport!,
      plainArithmetic(),
    ),
  ).rejects.toThrow(/reads elements 0 to 4 of output, which has 8 bytes/);
});
