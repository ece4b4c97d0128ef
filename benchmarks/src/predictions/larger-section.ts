import type { LargerPrediction } from "../published/predict-larger.ts";
import { methods, modelNames, networks } from "../published/seven-methods.ts";
import { alignColumns } from "../report/align-columns.ts";
import { formatRate, networkTitles } from "./format.ts";

/** Returns the section on predictions for 32 GPUs, which the published table does not contain. */
export const largerSection = (larger: readonly LargerPrediction[]): string => `## 32 GPUs, predicted

Samples per second of the whole cluster (8 nodes of 4 GPUs), never measured for this page: the model, times what it was off in the same row at 16 GPUs; in brackets the model alone, and without a model the
step from 8 to 16 GPUs repeated, which is the bar to beat.

${alignColumns([
  ["model", "method", ...networks.map((network) => networkTitles[network])],
  ...modelNames.flatMap((model) =>
    methods.map((method) => [
      model,
      method,
      ...networks.map((network) => {
        const { samplesPerSecond, modelSamplesPerSecond, repeatedSamplesPerSecond } = larger.find(
          (one) => one.model === model && one.method === method && one.network === network,
        )!;
        return `${formatRate(samplesPerSecond)} (${formatRate(modelSamplesPerSecond)}; ${formatRate(repeatedSamplesPerSecond)})`;
      }),
    ]),
  ),
])}`;
