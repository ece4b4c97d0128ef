import type { Backend, DeviceArray } from "@skein/tensor-core";
import { median } from "../median.ts";

const samplesEach = 3;

/**
 * Time some calls of a compiled function whose result is one number, each until it has been read back, and take the
 * median. The first call compiles, and meets cold caches; it does not count.
 */
export const medianSeconds = async (
  call: () => Promise<DeviceArray>,
  backend: Backend,
  numSamples: number = samplesEach,
): Promise<number> => {
  const once = async (): Promise<number> => {
    const begin = performance.now();
    const result = await call();
    await backend.download(result);
    const seconds = (performance.now() - begin) / 1000;
    backend.free(result);
    return seconds;
  };
  await once();
  const samples: number[] = [];
  for (let i = 0; i < numSamples; i++) samples.push(await once());
  return median(samples);
};
