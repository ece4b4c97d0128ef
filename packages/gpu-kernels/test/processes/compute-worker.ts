import { parentPort } from "node:worker_threads";
import { jit, matmul, NdArray, type Tensor } from "@skein/tensor-core";
import { createWebGpuBackend } from "../../src/index.ts";
import { openNodeGpu } from "../../src/node.ts";

// Runs a backend in a worker thread: computes one product, then exits.
const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
const f = jit((x: Tensor) => matmul(x, x), backend);
const product = await backend.download(await f(NdArray.from([1, 2, 3, 4], [2, 2])));
backend.close();
parentPort!.postMessage(product.toNumbers());
