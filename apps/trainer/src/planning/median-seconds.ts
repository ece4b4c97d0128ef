import { median } from "@skein/cost-model";
import type { Backend, DeviceArray } from "@skein/tensor-core";

const samplesEach = 3;

/**
 * Time some calls of compiled functions, of each the result is one number, until it has been read back, and take the
 * medians. Functions take turns, so that what else a machine does meets all of them alike. The first call of each
 * compiles, and meets cold caches; it does not count.
 *
 * @returns of each function.
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
