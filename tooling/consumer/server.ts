// A server that starts threads of our packages and computes with these threads. Bundlers must support such a server.
// Prints one line per package, including packages that fail.
import { createThreadWorld, joinWorld } from "@skein/collectives/node";
import { createCpuBackend } from "@skein/cpu-kernels";
import { textRecords } from "@skein/data";
import { Prefetcher } from "@skein/data/node";
import { jit, multiply, NdArray, type Tensor } from "@skein/tensor-core";

const parts: Readonly<Record<string, () => Promise<unknown>>> = {
  backend: async () => {
    const backend = await createCpuBackend();
    return (await backend.download(await jit((x: Tensor) => multiply(x, x), backend)(NdArray.from([3])))).item();
  },
  batches: async () => {
    const prefetcher = new Prefetcher(textRecords(new Uint8Array(64).fill(7), 8), {
      batchSize: 2,
      seed: 1,
      rank: 0,
      worldSize: 1,
    });
    const { batch } = await prefetcher.next();
    const [first] = batch["inputs"]!.toNumbers();
    await prefetcher.close();
    return first;
  },
  ranks: async () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const world = createThreadWorld({ worldSize: 2, memory, kernels: "none" });
    const ranks = [0, 1].map((rank) => {
      const values = new Float32Array(memory.buffer, 1024 * rank, 4).fill(rank + 1);
      const region = new Uint8Array(memory.buffer, values.byteOffset, values.byteLength);
      const communicator = joinWorld(world.connection(rank));
      return {
        communicator,
        values,
        handle: communicator.start({ kind: "all-reduce", dtype: "f32", input: region, output: region }),
      };
    });
    for (const { communicator, handle } of ranks) communicator.wait(handle);
    await world.close();
    return ranks.map(({ values }) => values[0]).join(" ");
  },
};

const main = async (): Promise<void> => {
  for (const [name, part] of Object.entries(parts)) {
    try {
      console.log(name, await part());
    } catch (error) {
      console.log(name, (error as { code?: string }).code, (error as Error).message);
    }
  }
};

void main();
