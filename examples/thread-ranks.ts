// Two ranks as threads of one process: each rank computes on its half of the data, and the all-reduce is a node of the
// graph. The file starts itself again as the thread of each rank.
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { createThreadWorld, joinWorld, type WorldConnection } from "@skein/collectives/node";
import { compileWasm, createCpuBackend, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import { allReduce, jit, multiply, NdArray, sum, type Tensor } from "@skein/tensor-core";

const numRanks = 2;

const main = async (): Promise<void> => {
  const memory = createSharedMemory();
  const kernels = await compileWasm(await detectBuild());
  const world = createThreadWorld({ worldSize: numRanks, memory, kernels });
  const answers = Array.from({ length: numRanks }, (_, rank) => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { connection: world.connection(rank), kernels },
    });
    world.watch(rank, worker);
    return new Promise<number>((resolve, reject) => worker.once("message", resolve).once("error", reject));
  });
  const sums = await Promise.all(answers);
  await world.close();
  console.log("sum of the squares of 0 to 999, from each rank:", sums.join(" and "));
  if (sums.some((value) => value !== 332_833_500)) throw new Error("the ranks' sum is wrong");
};

const rankMain = async ({
  connection,
  kernels,
}: {
  connection: WorldConnection;
  kernels: WebAssembly.Module;
}): Promise<void> => {
  const backend = await createCpuBackend({ memory: connection.memory, module: kernels });
  const sumOfSquares = jit((x: Tensor) => allReduce(sum(multiply(x, x)), "data"), backend, {
    communicators: { data: joinWorld(connection) },
  });
  const half = 1000 / numRanks;
  const mine = NdArray.from(
    Array.from({ length: half }, (_, i) => connection.rank * half + i),
    [half],
    "i32",
  );
  parentPort!.postMessage((await backend.download(await sumOfSquares(mine))).item());
};

await (isMainThread ? main() : rankMain(workerData));
