// Gain of the parallel tensor operator: compares all norms on every rank with a share of the norms per rank and an
// all-gather. Run: node bench/parallel-norms.bench.ts
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { joinWorld, createThreadWorld, type WorldConnection } from "@skein/collectives/node";
import { compileWasm, createCpuBackend, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import { summarize } from "@skein/measuring";
import { concat, type DeviceArray, jit, NdArray, reshape, type Tensor } from "@skein/tensor-core";
import { tensorNorms } from "../src/tensor-norms.ts";

interface RankData {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  readonly lengths: readonly number[];
}

/**
 * Times in milliseconds from the common start until the slowest rank ends, one per measured call. `whole`: each rank
 * computes all norms. `shared`: each rank computes a share of the norms. The main thread reads only the times of rank
 * 0.
 */
interface Answer {
  readonly whole: readonly number[];
  readonly shared: readonly number[];
}

const widths = [64, 64, 64, 64, 64, 128, 128, 128, 128, 128, 256, 256, 256, 256, 256, 512, 512, 512, 512, 512];
/**
 * Element counts of the weights with a trust ratio, by model. LARS computes the norms of these weights and of their
 * updates.
 */
const models: readonly (readonly [string, readonly number[]])[] = [
  ["ResNet-18, 11.2 M weights", [...widths.map((width, i) => 9 * (widths[i - 1] ?? 3) * width), 5120]],
  [
    "GPT of 2 layers and 64 features, 0.1 M weights",
    [16384, 4096, ...[1, 2].flatMap(() => [12288, 4096, 16384, 16384])],
  ],
];
const samples = 60;
const warmUps = 20;

const runRank = async ({ connection, module, lengths }: RankData): Promise<Answer> => {
  const world = joinWorld(connection);
  const backend = await createCpuBackend({ memory: connection.memory, module });
  const tensors = [...lengths, ...lengths].map((length, i) =>
    backend.upload(new NdArray("f32", [length], new Float32Array(length).fill(1 / (i + 1)))),
  );
  const normsBy = (axis: string | undefined) =>
    jit((...own: Tensor[]) => concat(tensorNorms(own, axis).map((norm) => reshape(norm, [1]))), backend, {
      communicators: { data: world },
    });
  const [whole, shared] = [normsBy(undefined), normsBy("data")];
  const barrier = (): void => {
    const empty = new Uint8Array(connection.memory.buffer, 0, 0);
    world.wait(world.start({ kind: "barrier", dtype: "u8", input: empty, output: empty, awaited: true }));
  };
  /** Measures the time in milliseconds from the common start until the slowest rank ends. */
  const time = async (norms: typeof whole): Promise<number> => {
    barrier();
    const begin = performance.now();
    backend.free((await norms(...(tensors as never[]))) as unknown as DeviceArray);
    barrier();
    return performance.now() - begin;
  };
  const answer = { whole: [] as number[], shared: [] as number[] };
  for (let i = 0; i < warmUps + samples; i++) {
    const [first, second] = [await time(whole), await time(shared)];
    if (i < warmUps) continue;
    answer.whole.push(first);
    answer.shared.push(second);
  }
  return answer;
};

if (isMainThread) {
  const module = await compileWasm(await detectBuild());
  for (const [name, lengths] of models)
    for (const worldSize of [2, 4]) {
      const world = createThreadWorld({ worldSize, memory: createSharedMemory(), kernels: module });
      const answers = await Promise.all(
        Array.from({ length: worldSize }, (_, rank) => {
          const worker = new Worker(new URL(import.meta.url), {
            workerData: { connection: world.connection(rank), module, lengths } satisfies RankData,
          });
          return new Promise<Answer>((resolve, reject) => worker.once("message", resolve).once("error", reject));
        }),
      );
      await world.close();
      const [whole, shared] = [summarize(answers[0]!.whole), summarize(answers[0]!.shared)];
      const text = ({ median, mad }: typeof whole): string =>
        `${(1000 * median).toFixed(0)} ± ${(1000 * mad).toFixed(0)} µs`;
      console.log(
        `${name}, ${worldSize} ranks: all on each ${text(whole)}, shared ${text(shared)}, ${(whole.median / shared.median).toFixed(2)}×`,
      );
    }
} else {
  parentPort!.postMessage(await runRank(workerData as RankData));
}
