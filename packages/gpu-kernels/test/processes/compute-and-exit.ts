import { add, jit, NdArray, type Tensor } from "@skein/tensor-core";
import { createWebGpuBackend } from "../../src/index.ts";
import { openNodeGpu } from "../../src/node.ts";

// A complete program: computes, idles, closes the backend and exits. Prints its results, and the CPU time used during
// two idle seconds.
const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
const f = jit((x: Tensor) => add(x, 1), backend);
const values = (await backend.download(await f(NdArray.from([1, 2, 3])))).toNumbers();
await new Promise((resolve) => setTimeout(resolve, 200));
const before = process.cpuUsage();
await new Promise((resolve) => setTimeout(resolve, 2000));
const { user, system } = process.cpuUsage(before);
backend.close();
process.stdout.write(JSON.stringify({ values, idleCpuSeconds: (user + system) / 1e6, closedAt: Date.now() }));
