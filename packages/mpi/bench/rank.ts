// One rank of the benchmark: all-reduce of f32 in place through the adapter; rank 0 prints what all-reduce.c prints.
// mpirun -n 2 node rank.ts native 4096:500 1048576:200 (or the name of a schedule instead of "native")
import { algorithms, execute, heapMessageMemory, plainArithmetic, scratchBytes } from "@skein/collectives";
import type { CollectiveRequest } from "@skein/tensor-core";
import { connectMpi, openMpi } from "../src/node.ts";

const [how, ...sizes] = process.argv.slice(2);
const world = await openMpi();
const { rank, size: worldSize } = world;
const memory = heapMessageMemory();
const { transports, native } = await connectMpi({ world, lanes: 1, memory, timeoutMilliseconds: 60_000 });
const algorithm = algorithms.find(({ name }) => name === how);

const allReduce = async (values: Float32Array): Promise<void> => {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const request: CollectiveRequest = { kind: "all-reduce", dtype: "f32", input: bytes, output: bytes };
  if (how === "native") return native.run(request, 0, "all-reduce")!;
  const schedule = algorithm!.schedule({ rank, worldSize, elementCount: values.length, hosts: world.hosts });
  const scratch = memory.take(scratchBytes(schedule, "f32"));
  await execute(schedule, { ...request, scratch, tag: 1 }, transports[0]!, plainArithmetic());
  memory.give(scratch);
};

const validate = async (values: Float32Array): Promise<void> => {
  for (let i = 0; i < values.length; i++) values[i] = (i % 7) + rank;
  await allReduce(values);
  for (let i = 0; i < values.length; i++) {
    const expected = (i % 7) * worldSize + (worldSize * (worldSize - 1)) / 2;
    if (values[i] !== expected) throw new Error(`rank ${rank}: element ${i} of ${values.length} is ${values[i]} instead of ${expected}`);
  }
};

for (const size of sizes) {
  const [bytes, samples] = size.split(":").map(Number) as [number, number];
  const values = new Float32Array(new SharedArrayBuffer(bytes));
  await validate(values);
  values.fill(0);
  for (let warmUp = 0; warmUp < 3; warmUp++) await allReduce(values);
  const taken = new Float32Array(new SharedArrayBuffer(4 * samples));
  for (let i = 0; i < samples; i++) {
    await world.barrier();
    const begin = performance.now();
    await allReduce(values);
    taken[i] = (performance.now() - begin) * 1000;
  }
  await validate(values);
  const all = new Uint8Array(taken.buffer);
  await native.run({ kind: "all-reduce", reduction: "max", dtype: "f32", input: all, output: all }, 0, "times");
  if (rank === 0) process.stdout.write(`${JSON.stringify({ bytes, microseconds: Array.from(taken) })}\n`);
}
await world.finalize();
