import { parentPort, workerData } from "node:worker_threads";
import { createCpuBackend } from "@skein/cpu-kernels";
import { type DeviceArray, jit } from "@skein/tensor-core";
import { joinWorld, type WorldConnection } from "../src/node.ts";
import { operandsOf, partitions, type Program, tracedBy } from "./differing-programs.ts";

// Entry of a rank's thread: compiles and runs each program twice, and sends the bits of what comes of it.

export interface DifferingRankData {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  readonly programs: readonly Program[];
}

export type DifferingAnswer =
  | { readonly values: readonly (readonly (readonly number[])[])[] }
  | { readonly error: string };

const { connection, module, programs } = workerData as DifferingRankData;
const world = joinWorld(connection);
const communicators = {
  all: world,
  row: world.split(partitions.row, "row"),
  column: world.split(partitions.column, "column"),
};

const run = async (): Promise<number[][][]> => {
  const backend = await createCpuBackend({ memory: connection.memory, module });
  const values: number[][][] = [];
  for (const program of programs) {
    const compiled = jit(tracedBy(program, connection.rank), backend, { communicators });
    for (let round = 0; round < 2; round++) {
      const outputs = (await compiled(
        ...(operandsOf(connection.rank) as never as [never, never]),
      )) as unknown as DeviceArray[];
      values.push(await Promise.all(outputs.map(async (output) => (await backend.download(output)).toNumbers())));
      for (const output of new Set(outputs)) backend.free(output);
    }
    compiled.release();
  }
  return values;
};

const post = (answer: DifferingAnswer): void => parentPort!.postMessage(answer);
run().then(
  (values) => post({ values }),
  (error: unknown) => post({ error: (error as Error).message }),
);
