// Uses our packages as a program in a browser or in Node would. Compiled against the packed packages, with a consumer's
// compiler settings.
import { execute, createMemoryWorld, plainArithmetic, type CollectiveSchedule } from "@skein/collectives";
import { ringAllReduce } from "@skein/collectives/algorithms";
import { topKCompressor, withErrorFeedback } from "@skein/compressors";
import { collectiveModelOfGroup } from "@skein/cost-model";
import { type CpuBackend, createCpuBackend } from "@skein/cpu-kernels";
import { textRecords, trainingBatches } from "@skein/data";
import { createWebGpuBackend, type WebGpuBackend } from "@skein/gpu-kernels";
import { mlp, type Model } from "@skein/models";
import { modelOf } from "@skein/pretrained";
import { jit, matmul, NdArray, relu, SkeinError, sum, type Tensor, valueAndGrad } from "@skein/tensor-core";

export const schedule: CollectiveSchedule = ringAllReduce.schedule({ rank: 0, worldSize: 2, elementCount: 4 });
export const payload: number = topKCompressor({ k: 2 }).payloadBytes(NdArray.from([1, 2, 3]));
export const model: Model = mlp({ sizes: [4, 2] });
export const decoder = (config: Readonly<Record<string, unknown>>): Model => modelOf(config);
export const sent: readonly number[] = createMemoryWorld(2).map(({ rank }) => rank);

export const windows = (text: Uint8Array): number => {
  const records = textRecords(text, 8);
  for (const { indices } of trainingBatches(records.count, { batchSize: 4, seed: 1, rank: 0, worldSize: 1 }))
    return indices.length;
  return 0;
};

export const slopes = async (values: readonly number[]): Promise<number[]> => {
  const backend: CpuBackend = await createCpuBackend();
  const step = jit((w: Tensor) => valueAndGrad((own: Tensor) => sum(relu(matmul(own, own))))(w)[1], backend);
  try {
    return (await backend.download(await step(NdArray.from(values, [2, 2])))).toNumbers();
  } catch (error) {
    if (error instanceof SkeinError) throw new Error(`${error.kind} ${error.code}`, { cause: error });
    throw error;
  }
};

export const onGpu = (gpu: Parameters<typeof createWebGpuBackend>[0]["gpu"]): Promise<WebGpuBackend> =>
  createWebGpuBackend({ gpu });

export { execute, collectiveModelOfGroup, plainArithmetic, withErrorFeedback };
