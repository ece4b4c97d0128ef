import { z } from "zod";
import { count } from "./ranges.ts";

/** Schema of the field `mesh` of a job. */
export const meshSchema = z
  .strictObject({
    data: count
      .optional()
      .describe("Data-parallel degree: number of ranks with identical parameters. Default: ranks / (expert · tensor)."),
    expert: count
      .default(1)
      .describe("Expert-parallel degree: number of ranks that the experts of each layer are divided among."),
    expertLevels: z
      .array(count)
      .min(1)
      .max(4)
      .optional()
      .describe(
        "Hierarchy of the ranks along expert, from the outermost level, such as [hosts, ranks per host]; the product is expert. Used by dispatch: hierarchical and duplicate-free. Default: one level.",
      ),
    tensor: count
      .default(1)
      .describe(
        "Tensor-parallel degree: number of ranks that process the same samples and shard the matrices of each block, and the sequence positions between blocks.",
      ),
  })
  .describe("Device mesh: data × expert × tensor = ranks.");
