import { describe, expect, test } from "vitest";
import { closedForm, fromBytes, operand, parametersOf, regionElements, toBytes } from "../../test/world.ts";
import { algorithms } from "../algorithms/table.ts";
import { execute, scratchBytes } from "../execute.ts";
import { plainArithmetic } from "../plain-arithmetic.ts";
import { groupTransport } from "./group-transport.ts";
import { createMemoryWorld } from "./memory-transport.ts";
import type { Transport } from "./transport.ts";

/**
 * Returns a transport that delays every received message, so that the sender's memory stays borrowed for a long time.
 */
const late = (transport: Transport): Transport => ({
  ...transport,
  receive: async (peer, tag, byteLength) => {
    for (let turn = 0; turn < 100; turn++) await undefined;
    return transport.receive(peer, tag, byteLength) as Uint8Array | Promise<Uint8Array>;
  },
});

describe.each([true, false])("groups with another order than the world; memory shared: %s", (sharesMemory) => {
  test.each(algorithms.map((algorithm) => ({ name: algorithm.name, algorithm })))("$name", async ({ algorithm }) => {
    const parts = [
      [4, 1, 5],
      [3, 0, 2],
    ];
    const world = createMemoryWorld(6, { sharesMemory });
    const n = 12;
    const counts = regionElements(algorithm.kind, 3, n);
    await Promise.all(
      parts.map(async (members) => {
        const inputs = members.map((member) => operand(member, counts.input, "f32"));
        const outputs = await Promise.all(
          members.map(async (member, rank) => {
            const schedule = algorithm.schedule(parametersOf(rank, 3, n));
            const regions = [
              toBytes(inputs[rank]!, "f32"),
              new Uint8Array(counts.output * 4),
              new Uint8Array(scratchBytes(schedule, "f32")),
            ];
            const [input, output, scratch] = regions as [Uint8Array, Uint8Array, Uint8Array];
            const transport = groupTransport(rank === 1 ? late(world[member]!) : world[member]!, members);
            await execute(schedule, { input, output, scratch, dtype: "f32", tag: 1 }, transport, plainArithmetic());
            const result = fromBytes(output, "f32");
            for (const region of regions) region.fill(0x7f); // A change would show in memory that is still lent.
            return result;
          }),
        );
        outputs.forEach((output, rank) =>
          expect(output, `rank ${rank} of ${members.join()}`).toEqual(
            closedForm(algorithm.kind, parametersOf(rank, 3, n), inputs),
          ),
        );
      }),
    );
  });
});
