import type { ReductionStep } from "@skein/tensor-core/backend";
import type { BindingSource, DeviceFacts, KernelPlan } from "../../kernel.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { foldPasses } from "./fold-passes.ts";
import { type Fold, laneType, type Sink, type Source } from "./fold.ts";

/** WGSL type of a sum. Signed and unsigned integers are both summed as u32, modulo 2³². */
export type SumType = "f32" | "u32";

export const sumFold = (type: SumType): Fold => ({
  label: "sum",
  fields: [{ name: "total", type, start: type === "f32" ? "0.0" : "0u" }],
  join: () => ({ fields: ["a.total + b.total"] }),
});

/** Returns a source that reads words of memory as states of a fold with one field. */
export const wordSource = (type: SumType, source: BindingSource): Source => ({
  bindings: (lanes) => [{ name: "x", type: `array<${laneType(type, lanes)}>`, source, access: "read" }],
  code: () => "fn lift(at: u32, place: u32, column: u32) -> State { return State(x[at]); }",
});

const totalSink = (type: SumType, source: BindingSource): Sink => ({
  bindings: (lanes) => [{ name: "y", type: `array<${laneType(type, lanes)}>`, source, access: "write" }],
  code: () => "fn store(at: u32, s: Result) { y[at] = s.total; }",
});

/**
 * Returns the plan of `y[outer, inner] = Σ x[outer, size, inner]`, step by step. Cost: one flop per element; all data
 * is read once.
 */
export const sumPlan = (type: SumType, steps: readonly ReductionStep[], facts: DeviceFacts): KernelPlan => {
  const blocks = new ScratchBlocks();
  const passes = foldPasses(
    sumFold(type),
    wordSource(type, { input: 0 }),
    totalSink(type, { output: 0 }),
    steps,
    blocks,
    facts,
  );
  return { scratch: blocks.bytes, passes };
};
