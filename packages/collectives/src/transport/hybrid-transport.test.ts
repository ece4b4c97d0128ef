import { describe, expect, test } from "vitest";
import { algorithms } from "../algorithms/table.ts";
import { execute, scratchBytes } from "../execute.ts";
import { plainArithmetic } from "../plain-arithmetic.ts";
import { closedForm, fromBytes, operand, parametersOf, regionElements, toBytes } from "../../test/world.ts";
import { hybridTransport } from "./hybrid-transport.ts";
import { createMemoryWorld } from "./memory-transport.ts";
import type { Transport } from "./transport.ts";

/** Returns a transport that receives into given memory, as networks do. */
const landing = (transport: Transport): Transport => ({
  ...transport,
  receiveInto: async (peer, tag, target) => {
    target.set((await transport.receive(peer, tag, target.byteLength)) as Uint8Array);
    transport.release(peer);
  },
});

// Processes of different sizes, so that a rank has local peers, remote peers, or both.
describe.each([
  {
    processes: [
      [0, 1],
      [2, 3],
    ],
  },
  { processes: [[0], [1, 2, 3], [4]] },
  { processes: [[0, 1, 2]] },
])("ranks in processes $processes", ({ processes }) => {
  test.each(algorithms.map((algorithm) => ({ name: algorithm.name, algorithm })))(
    "$name equals the closed form",
    async ({ algorithm }) => {
      const worldSize = processes.flat().length;
      const [local, network] = [
        createMemoryWorld(worldSize, { sharesMemory: true }),
        createMemoryWorld(worldSize).map(landing),
      ];
      const counts = regionElements(algorithm.kind, worldSize, 23);
      const inputs = Array.from({ length: worldSize }, (_, rank) => operand(rank, counts.input, "f32"));
      const outputs = await Promise.all(
        inputs.map(async (values, rank) => {
          const own = processes.find((ranks) => ranks.includes(rank))!;
          const transport = hybridTransport(local[rank]!, network[rank]!, (peer) => own.includes(peer));
          const schedule = algorithm.schedule(parametersOf(rank, worldSize, 23));
          const [input, output] = [toBytes(values, "f32"), new Uint8Array(counts.output * 4)];
          const scratch = new Uint8Array(scratchBytes(schedule, "f32"));
          await execute(schedule, { input, output, scratch, dtype: "f32", tag: 1 }, transport, plainArithmetic());
          return fromBytes(output, "f32");
        }),
      );
      outputs.forEach((output, rank) =>
        expect(output, `rank ${rank}`).toEqual(closedForm(algorithm.kind, parametersOf(rank, worldSize, 23), inputs)),
      );
    },
  );
});
