import { parentPort, workerData } from "node:worker_threads";
import { joinWorld, type WorldConnection } from "@skein/collectives/node";
import { add, allGather, allReduce, type DeviceArray, jit, multiply, NdArray, type Tensor } from "@skein/tensor-core";
import { openBackend } from "../src/backend/backend.ts";

/** Returns the operand of a rank: small integers, so that sums are exact in any order. */
export const operandOf = (rank: number): NdArray =>
  NdArray.from(
    Array.from({ length: 1001 }, (_, i) => ((i * 7 + rank * 5) % 13) - 6),
    [7, 143],
  );

/**
 * Traced program of each rank. Starts two concurrent collectives, and a third collective that depends on the first
 * collective.
 */
export const worldProgram = (x: Tensor): Tensor[] => {
  const sum = allReduce(multiply(x, 2), "data");
  const all = allGather(add(x, 1), "data");
  return [sum, all, allReduce(add(sum, x), "data", "max")];
};

// Entry point of a rank's thread.
if (parentPort !== null) {
  const connection = workerData as WorldConnection;
  const { backend, close } = await openBackend("webgpu", { memory: connection.memory });
  const f = jit(worldProgram, backend, { communicators: { data: joinWorld(connection) } });
  const results: number[][][] = [];
  for (let run = 0; run < 3; run++) {
    const outputs = (await f(operandOf(connection.rank) as never)) as unknown as DeviceArray[];
    results.push(await Promise.all(outputs.map(async (output) => (await backend.download(output)).toNumbers())));
  }
  close();
  parentPort.postMessage(results);
}
