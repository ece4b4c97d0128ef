import type { ReductionStep } from "@skein/tensor-core/backend";
import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import type { SumType } from "../reduce/sum.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { columnScanPasses } from "./columns.ts";
import { rowScanPasses } from "./rows.ts";

/**
 * Returns the plan of running sums along the middle dimension of a dense [outer, size, inner] tensor. Reads all data
 * once or twice, writes it once.
 */
export const cumsumPlan = (
  type: SumType,
  { outer, size, inner }: ReductionStep,
  reverse: boolean,
  facts: DeviceFacts,
): KernelPlan => {
  const blocks = new ScratchBlocks();
  const [from, to] = [{ input: 0 }, { output: 0 }];
  const passes =
    inner === 1
      ? rowScanPasses({ type, rows: outer, size, reverse }, from, to, blocks)
      : columnScanPasses({ type, outer, size, inner, reverse }, from, to, blocks, facts);
  return { scratch: blocks.bytes, passes };
};
