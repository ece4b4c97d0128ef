import { parentPort, workerData } from "node:worker_threads";
import { createCpuBackend } from "@skein/cpu-kernels";
import { type Backend, type DeviceArray, jit } from "@skein/tensor-core";
import { joinWorld, type WorldConnection } from "../src/node.ts";
import { operandsOf, partitions, type Program, tracedBy } from "./differing-programs.ts";

// Entry point of a rank's thread: compiles and runs each program two times, and posts the bits of the results or the
// error.

export interface DifferingRankData {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  readonly programs: readonly Program[];
}

/** Results of each round of a program, or the error message. */
export type Outcome = readonly (readonly (readonly number[])[])[] | string;

export type DifferingAnswer = { readonly outcomes: readonly Outcome[] } | { readonly error: string };

const { connection, module, programs } = workerData as DifferingRankData;
const world = joinWorld(connection);
const communicators = {
  all: world,
  row: world.split(partitions.row, "row"),
  column: world.split(partitions.column, "column"),
};

const runTwice = async (program: Program, backend: Backend): Promise<number[][][]> => {
  const values: number[][][] = [];
  const compiled = jit(tracedBy(program, connection.rank), backend, { communicators });
  for (let round = 0; round < 2; round++) {
    const outputs = (await compiled(
      ...(operandsOf(connection.rank) as never as [never, never]),
    )) as unknown as DeviceArray[];
    values.push(await Promise.all(outputs.map(async (output) => (await backend.download(output)).toNumbers())));
    for (const output of new Set(outputs)) backend.free(output);
  }
  compiled.release();
  return values;
};

const run = async (): Promise<Outcome[]> => {
  const backend = await createCpuBackend({ memory: connection.memory, module });
  const outcomes: Outcome[] = [];
  for (const program of programs)
    outcomes.push(await runTwice(program, backend).catch((error: unknown) => (error as Error).message));
  return outcomes;
};

const post = (answer: DifferingAnswer): void => parentPort!.postMessage(answer);
run().then(
  (outcomes) => post({ outcomes }),
  (error: unknown) => post({ error: (error as Error).message }),
);
