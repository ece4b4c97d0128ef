import { type CpuBackendOptions, createCpuBackend } from "@skein/cpu-kernels";
import { add, type Backend, type DeviceArray, jit, matmul, NdArray, type Tensor } from "@skein/tensor-core";
import type { BackendRates } from "./backend-rates.ts";

const side = 512;
const elements = 2 ** 22;
const chain = 20;

/**
 * Returns the duration of a call in seconds: the minimum of three calls after a warm-up call. The call must end by
 * reading back one number, so that all queued work is included.
 */
const secondsOf = async (call: () => Promise<unknown>): Promise<number> => {
  await call();
  const times: number[] = [];
  for (let i = 0; i < 3; i++) {
    const began = performance.now();
    await call();
    times.push((performance.now() - began) / 1000);
  }
  return Math.min(...times);
};

/**
 * Measures the rates of a backend. Times a matrix product, an elementwise kernel over a large array and a chain of tiny
 * kernels. Takes well below a second on a CPU or a GPU.
 */
export const measureRates = async (backend: Backend): Promise<BackendRates> => {
  const one = backend.upload(NdArray.from([1]));
  const wait = jit((x: Tensor) => add(x, 1), backend);
  /** Queues `repeats` calls, and waits until all calls have finished. */
  const time = async (fn: (x: Tensor) => Tensor, input: DeviceArray, repeats: number): Promise<number> => {
    const compiled = jit(fn, backend);
    try {
      return await secondsOf(async () => {
        for (let i = 0; i < repeats; i++) backend.free(await compiled(input as never));
        const last = await wait(one as never);
        await backend.download(last);
        backend.free(last);
      });
    } finally {
      compiled.release();
    }
  };
  const square = backend.upload(NdArray.zeros("f32", [side, side]));
  const long = backend.upload(NdArray.zeros("f32", [elements]));
  try {
    const idle = await time((x) => add(x, 1), one, 0);
    const seconds = async (fn: (x: Tensor) => Tensor, input: DeviceArray, repeats: number): Promise<number> =>
      Math.max(1e-9, (await time(fn, input, repeats)) - idle) / repeats;
    const product = await seconds((x) => matmul(x, x), square, 4);
    const sweep = await seconds((x) => add(x, 1), long, 4);
    // Matrix products of one element do not fuse: each product is a separate kernel.
    const tiny = backend.upload(NdArray.zeros("f32", [1, 1]));
    const kernels = await seconds(
      (x) => Array.from({ length: chain }).reduce((y: Tensor) => matmul(y, x), x),
      tiny,
      10,
    );
    backend.free(tiny);
    return {
      flopsPerSecond: (2 * side ** 3) / product,
      bytesPerSecond: (8 * elements) / sweep,
      kernelSeconds: kernels / chain,
    };
  } finally {
    for (const array of [one, square, long]) backend.free(array);
    wait.release();
  }
};

/** Measures the rates of a CPU backend that is created for the measurement. */
export const measureCpuRates = async (options: CpuBackendOptions): Promise<BackendRates> => {
  const backend = await createCpuBackend(options);
  try {
    return await measureRates(backend);
  } finally {
    await backend.close();
  }
};
