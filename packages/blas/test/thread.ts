// A thread that repeats a product with a BLAS, on its own region of the memory that all threads share.
import { parentPort, workerData } from "node:worker_threads";
import { createCpuBackend } from "@skein/cpu-kernels";
import { evaluate, matmul, NdArray, type Tensor } from "@skein/tensor-core";
import { type BlasFiles, openBlas } from "../src/node.ts";

const { files, memory, size, repeats } = workerData as {
  readonly files: BlasFiles;
  readonly memory: WebAssembly.Memory;
  readonly size: number;
  readonly repeats: number;
};

const backend = await createCpuBackend({ memory, blas: openBlas(files) });
const values = NdArray.from(
  Float32Array.from({ length: size * size }, (_, i) => Math.sin(12.9898 * i)),
  [size, size],
);
const product = evaluate((a: Tensor) => matmul(a, a), backend);
const digests = new Set<string>();
for (let i = 0; i < repeats; i++) digests.add(Buffer.from((await product(values)).bytes()).toString("base64"));
parentPort!.postMessage([...digests]);
