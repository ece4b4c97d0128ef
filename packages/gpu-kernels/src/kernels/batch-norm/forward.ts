import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { foldPasses } from "../reduce/fold-passes.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { mapColumnsPass } from "./map-columns.ts";
import { momentsFold, momentsSink, momentsSource } from "./moments.ts";
import { wgsl } from "../../wgsl.ts";

export interface NormSize {
  readonly rows: number;
  readonly width: number;
  readonly epsilon: number;
}

/**
 * Computes the statistics of each column, then `y = (x − mean) · γ/√(variance + ε) + β`. Reads x twice, writes y once.
 */
export const batchNormPlan = ({ rows, width, epsilon }: NormSize, facts: DeviceFacts): KernelPlan => {
  const blocks = new ScratchBlocks();
  const [mean, variance] = [{ output: 1 }, { output: 2 }];
  const passes = foldPasses(
    momentsFold,
    momentsSource({ input: 0 }),
    momentsSink(mean, variance),
    [{ outer: 1, size: rows, inner: width }],
    blocks,
    facts,
  );
  if (rows > 0)
    passes.push(
      mapColumnsPass({
        label: "batch-norm normalise",
        rows,
        width,
        reads: { x: { input: 0 }, gamma: { input: 1 }, beta: { input: 2 }, mean, variance },
        write: { output: 0 },
        perColumn: wgsl`
          let scale = gamma[column] * inverseSqrt(variance[column] + f32(${epsilon}));
          let shift = beta[column];
          let centre = mean[column];
        `,
        value: "(x[at] - centre) * scale + shift",
      }),
    );
  return { scratch: blocks.bytes, passes };
};
