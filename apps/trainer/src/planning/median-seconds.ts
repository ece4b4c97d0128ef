import { median } from "@skein/measuring";
import type { Backend, DeviceArray } from "@skein/tensor-core";

const samplesEach = 3;

/**
 * Measures compiled functions that return one number. A call ends when the number has been read back. Functions are
 * called alternately, so that other load on the machine affects all functions equally. The first call of each function
 * is not counted, because it compiles and warms up caches.
 *
 * @returns median seconds of each function.
 */
export const medianSeconds = async (
  calls: readonly (() => Promise<DeviceArray>)[],
  backend: Backend,
  numSamples: number = samplesEach,
): Promise<number[]> => {
  const samples: number[][] = calls.map(() => []);
  for (let round = 0; round <= numSamples; round++)
    for (const [i, call] of calls.entries()) {
      const begin = performance.now();
      const result = await call();
      await backend.download(result);
      if (round > 0) samples[i]!.push((performance.now() - begin) / 1000);
      backend.free(result);
    }
  return samples.map(median);
};
