// Times all-reduce by the calls of @skein/mpi alone, in the main thread of each process, to measure the adapter without
// a companion process. SKEIN_MPI_ADDON=… mpirun -n 2 node mpi-calls.ts --by native 4096:1000 (or the name of a
// schedule, or "choice" for the schedule that a job chooses)
import { parseArgs } from "node:util";
import { algorithms } from "@skein/collectives/algorithms";
import { execute, scratchBytes, selectAlgorithm, wasmArithmetic, wasmMessageMemory } from "@skein/collectives";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import { connectMpi, openMpi } from "@skein/mpi/node";
import { ArgumentError, type Reduction } from "@skein/tensor-core";
import { conditionsHere } from "./conditions.ts";
import { type Measurement, parseSizes, warmUpsOf } from "./problem.ts";

const { values: options, positionals } = parseArgs({
  options: { by: { type: "string", default: "native" } },
  allowPositionals: true,
});
const sizes = parseSizes(positionals);
const world = await openMpi();
const { rank, size: worldSize, hosts } = world;
const shared = new WebAssembly.Memory({ initial: 1, maximum: 65_536, shared: true });
const memory = wasmMessageMemory(shared);
const arithmetic = wasmArithmetic(await compileWasm(await detectBuild()), shared);
const { transports, natives } = await connectMpi({ world, lanes: 1, memory, timeoutMilliseconds: 60_000 });

const [exchange, native] = natives!(arithmetic);

const allReduce = async (bytes: Uint8Array, reduction: Reduction): Promise<void> => {
  await native!.run(
    { kind: "all-reduce", dtype: "f32", reduction, input: bytes, output: bytes },
    0,
    0,
    () => "all-reduce",
  );
};
const exchanged = async (bytes: Uint8Array, tag: number): Promise<void> => {
  await exchange!.run(
    { kind: "all-reduce", dtype: "f32", reduction: "sum", input: bytes, output: bytes },
    0,
    tag,
    () => "all-reduce",
  );
};

/**
 * Returns the implementation of all-reduce that the command line selects: native MPI collectives, native message
 * exchange, or an algorithm of @skein/collectives.
 */
const timed = (bytes: Uint8Array): (() => Promise<void>) => {
  let tag = 0;
  if (options.by === "native") return () => allReduce(bytes, "sum");
  if (options.by === "exchange") return () => exchanged(bytes, ++tag);
  const chosen =
    options.by === "choice"
      ? selectAlgorithm({ kind: "all-reduce", byteLength: bytes.byteLength, worldSize, sharesMemory: false, hosts })
      : { algorithm: algorithms.find(({ name }) => name === options.by), segments: 1 };
  if (chosen.algorithm === undefined)
    throw new ArgumentError(
      `there is no schedule "${options.by}"; say native, exchange, choice, or a name of docs/algorithms.md`,
    );
  const schedule = chosen.algorithm.schedule({
    rank,
    worldSize,
    elementCount: bytes.byteLength / 4,
    hosts,
    segments: chosen.segments,
  });
  const scratch = memory.take(scratchBytes(schedule, "f32"));
  return () =>
    execute(schedule, { input: bytes, output: bytes, scratch, dtype: "f32", tag: ++tag }, transports[0]!, arithmetic);
};

if (rank === 0) process.stdout.write(`${JSON.stringify(conditionsHere())}\n`);
for (const size of sizes) {
  const { bytes, samples } = size;
  const region = memory.take(bytes);
  const values = new Float32Array(region.buffer, region.byteOffset, bytes / 4);
  const run = timed(region);
  const validate = async (): Promise<void> => {
    for (let i = 0; i < values.length; i++) values[i] = (i % 7) + rank;
    await run();
    for (let i = 0; i < values.length; i++) {
      const expected = (i % 7) * worldSize + (worldSize * (worldSize - 1)) / 2;
      if (values[i] !== expected)
        throw new Error(`rank ${rank}: element ${i} of ${values.length} is ${values[i]} instead of ${expected}`);
    }
  };
  await validate();
  region.fill(0);
  for (let i = 0; i < warmUpsOf(size); i++) await run();
  const timesRegion = memory.take(4 * samples);
  const taken = new Float32Array(timesRegion.buffer, timesRegion.byteOffset, samples);
  for (let i = 0; i < samples; i++) {
    await world.barrier();
    const begin = performance.now();
    await run();
    taken[i] = (performance.now() - begin) * 1000;
  }
  await validate();
  await allReduce(timesRegion, "max");
  if (rank === 0)
    process.stdout.write(`${JSON.stringify({ bytes, microseconds: Array.from(taken) } satisfies Measurement)}\n`);
}
await world.finalize();
