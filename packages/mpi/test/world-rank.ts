// One rank of a world over MPI: prints "RESULT" with the results of its collectives. Requests are executed by its
// companion ("companion"), by its compute thread if they are awaited ("caller"), or by the compute thread on even ranks
// and the companion on odd ranks ("both"): node world-rank.ts [sums|late|mixed] [caller|companion|both] [seed]
import { joinWorld } from "@skein/collectives/node";
import { createMpiWorld, joinMpiWorld } from "../src/node.ts";
import { runMixedProgram } from "./mixed-program.ts";

const [job = "sums", by = "both", seed = "1"] = process.argv.slice(2);
const memory = new WebAssembly.Memory({ initial: 256, maximum: 1024, shared: true });
const timeoutMilliseconds = job === "late" ? 500 : 20_000;
const world = await createMpiWorld({ memory, kernels: "none", timeoutMilliseconds });
const { rank, worldSize } = world;
const report = (result: object): void => void process.stdout.write(`RESULT ${JSON.stringify({ rank, ...result })}\n`);
const words = await world.share(rank === 0 ? "said by rank 0, ä" : undefined);
await world.connect();
const connection = world.connection(rank);
const isCaller = by === "caller" || (by === "both" && rank % 2 === 0);
const communicator = (isCaller ? joinMpiWorld : joinWorld)(connection);

let next = 1024;
const region = (count: number): Int32Array => {
  const array = new Int32Array(memory.buffer, next, count);
  next += 4 * count;
  return array;
};
const bytes = ({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

if (job === "mixed") {
  report({ ...runMixedProgram(communicator, memory, Number(seed)), isCaller: connection.mpi.communicators.length > 0 });
  await world.close();
} else if (job === "late") {
  const vector = region(8);
  if (rank === 0) {
    try {
      communicator.wait(
        communicator.start({
          kind: "all-reduce",
          dtype: "i32",
          input: bytes(vector),
          output: bytes(vector),
          awaited: true,
        }),
      );
    } catch (error) {
      report({ code: (error as { code: string }).code, message: (error as Error).message });
    }
    await world.close();
    process.exit(6);
  }
  setTimeout(() => undefined, 60_000);
} else {
  const vectors = [0, 1, 2, 3].map((priority) => region(100).fill(rank + priority));
  const handles = vectors.map((vector, priority) =>
    communicator.start({ kind: "all-reduce", dtype: "i32", input: bytes(vector), output: bytes(vector), priority }),
  );
  for (const handle of handles.toReversed()) communicator.wait(handle);
  const pairs = Array.from({ length: Math.ceil(worldSize / 2) }, (_, i) =>
    [2 * i, 2 * i + 1].filter((one) => one < worldSize),
  );
  const pair = communicator.split(pairs, "pair");
  const gathered = region(pair.worldSize);
  const own = region(1).fill(rank);
  pair.wait(pair.start({ kind: "all-gather", dtype: "i32", input: bytes(own), output: bytes(gathered) }));
  // Row r of every chunk goes to the rank of the chunk; rank k sends k + 1 rows to each rank.
  const sent = region(worldSize * 8).fill(rank + 1);
  const arrived = region(worldSize * 8).fill(-1);
  const rows = region(worldSize).fill(rank + 1);
  const receivedRows = region(worldSize);
  communicator.wait(
    communicator.start({
      kind: "all-to-all",
      dtype: "i32",
      input: bytes(sent),
      output: bytes(arrived),
      ragged: { capacity: 8, rows: bytes(rows), receivedRows: bytes(receivedRows) },
    }),
  );
  report({
    words,
    sums: vectors.map((vector) => vector[99]),
    gathered: [...gathered],
    receivedRows: [...receivedRows],
    arrived: [...arrived],
    hosts: world.hosts,
  });
  await world.close();
}
