import type { DType } from "@skein/tensor-core";
import type { ReductionStep } from "@skein/tensor-core/backend";
import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { elementBits } from "./extreme.ts";
import { foldPasses } from "./fold-passes.ts";
import { type Fold, laneType, type Sink, type Source } from "./fold.ts";
import { keyFunction, keyKindOf } from "./order-keys.ts";

/**
 * Returns the fold of `argmax` or `argmin`. The fold keeps the largest key and, among equal keys, the first position.
 * Two states are never equal, because their positions differ, so states can be combined in any order.
 */
const argFold = (which: "max" | "min"): Fold => ({
  label: `arg${which}`,
  fields: [
    { name: "key", type: "u32", start: "0u" },
    { name: "place", type: "u32", start: "0xffffffffu" },
  ],
  join: () => ({
    before: "let better = (b.key > a.key) | ((b.key == a.key) & (b.place < a.place));",
    fields: ["select(a.key, b.key, better)", "select(a.place, b.place, better)"],
  }),
});

const positionedSource = (dtype: DType, flip: boolean): Source => ({
  bindings: (lanes) => [elementBits(dtype, lanes).binding],
  code: (lanes, along) => {
    const position =
      lanes === 1 ? "place" : along ? "vec4<u32>(place) + vec4<u32>(0u, 1u, 2u, 3u)" : "vec4<u32>(place)";
    return `${keyFunction(keyKindOf[dtype]!, flip, lanes)}\n${elementBits(dtype, lanes).code}\nfn lift(at: u32, place: u32, column: u32) -> State { return State(key_of(bits_at(at)), ${position}); }`;
  },
});

const positionSink: Sink = {
  bindings: (lanes) => [
    { name: "y", type: `array<${laneType("i32", lanes)}>`, source: { output: 0 }, access: "write" },
  ],
  code: (lanes) => `fn store(at: u32, s: Result) { y[at] = ${laneType("i32", lanes)}(s.place); }`,
};

/**
 * Returns the plan of `argmax` or `argmin` along the middle dimension of [outer, size, inner]. If several elements are
 * equal, or several are NaN, the result is the first position.
 */
export const argExtremePlan = (
  which: "max" | "min",
  dtype: DType,
  step: ReductionStep,
  facts: DeviceFacts,
): KernelPlan => {
  const blocks = new ScratchBlocks();
  const passes = foldPasses(
    argFold(which),
    positionedSource(dtype, which === "min"),
    positionSink,
    [step],
    blocks,
    facts,
  );
  return { scratch: blocks.bytes, passes };
};
