import type { DType } from "@skein/tensor-core";
import type { ReductionStep } from "@skein/tensor-core/backend";
import type { Binding, DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import { bitsFunction, elementsPerWord } from "../../storage.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { foldPasses } from "./fold-passes.ts";
import { type Fold, type Lanes, laneType, type Sink, type Source, workgroupSize } from "./fold.ts";
import { type KeyKind, keyFunction, keyKindOf, minKey, unkeyFunction } from "./order-keys.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Returns the fold that keeps the largest key. For a minimum, keys are flipped, so that the smallest element has the
 * largest key.
 */
const extremeFold = (which: "max" | "min", kind: KeyKind): Fold => ({
  label: `reduce-${which}`,
  fields: [{ name: "key", type: "u32", start: minKey(kind) }],
  join: () => ({ fields: ["max(a.key, b.key)"] }),
});

/**
 * Returns a binding that contains elements as bits, and WGSL of `fn bits_at(at: u32)`, which returns the bits of
 * `lanes` elements.
 */
export const elementBits = (dtype: DType, lanes: Lanes): { readonly binding: Binding; readonly code: string } => {
  const packed = elementsPerWord(dtype) > 1;
  const type = packed ? "array<u32>" : `array<${laneType("u32", lanes)}>`;
  const code = !packed
    ? `fn bits_at(at: u32) -> ${laneType("u32", lanes)} { return x[at]; }`
    : lanes === 1
      ? `${bitsFunction("x", dtype)}\nfn bits_at(at: u32) -> u32 { return bits_x(at); }`
      : "fn bits_at(at: u32) -> vec4<u32> { return (vec4<u32>(x[at]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u); }";
  return { binding: { name: "x", type, source: { input: 0 }, access: "read" }, code };
};

const elementSource = (dtype: DType, kind: KeyKind, flip: boolean): Source => ({
  bindings: (lanes) => [elementBits(dtype, lanes).binding],
  code: (lanes) =>
    `${keyFunction(kind, flip, lanes)}\n${elementBits(dtype, lanes).code}\nfn lift(at: u32, place: u32, column: u32) -> State { return State(key_of(bits_at(at))); }`,
});

const valueSink = (kind: Exclude<KeyKind, "magnitude">, flip: boolean): Sink => ({
  bindings: (lanes) => [
    { name: "y", type: `array<${laneType("u32", lanes)}>`, source: { output: 0 }, access: "write" },
  ],
  code: (lanes) => {
    const store =
      lanes === 1
        ? "fn store(at: u32, s: Result) { y[at] = bits_of(s.key); }"
        : "fn store(at: u32, s: Result) { y[at] = vec4<u32>(bits_of(s.key.x), bits_of(s.key.y), bits_of(s.key.z), bits_of(s.key.w)); }";
    return `${unkeyFunction(kind, flip)}\n${store}`;
  },
});

/** Packs four byte keys into each word. */
const packPass = (count: number, kind: "byte" | "bool", flip: boolean, keys: Binding["source"]): Pass => ({
  label: "pack bytes",
  bindings: [
    { name: "keys", type: "array<vec4<u32>>", source: keys, access: "read" },
    { name: "y", type: "array<u32>", source: { output: 0 }, access: "write" },
  ],
  workgroupSize,
  groups: Math.ceil(count / 4 / workgroupSize),
  code: wgsl`
    ${unkeyFunction(kind, flip)}
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (4u * at >= sizes.count) { return; }
      let k = keys[at];
      y[at] = (bits_of(k.x) & 255u) | ((bits_of(k.y) & 255u) << 8u) | ((bits_of(k.z) & 255u) << 16u) | ((bits_of(k.w) & 255u) << 24u);
    }
  `,
  sizes: { count },
});

/**
 * Returns the plan of the maximum or minimum over `steps`. The plan computes the maximum of keys, so that NaN is
 * treated as in the reference, and the result has exactly the bits of an element. Reads all data once. Byte dtypes need
 * an additional pass, because complete words must be written.
 */
export const extremePlan = (
  which: "max" | "min",
  dtype: DType,
  steps: readonly ReductionStep[],
  count: number,
  facts: DeviceFacts,
): KernelPlan => {
  const kind = keyKindOf[dtype] as Exclude<KeyKind, "magnitude">;
  const flip = which === "min";
  const blocks = new ScratchBlocks();
  const fold = extremeFold(which, kind);
  const source = elementSource(dtype, kind, flip);
  if (kind !== "byte" && kind !== "bool")
    return { scratch: blocks.bytes, passes: foldPasses(fold, source, valueSink(kind, flip), steps, blocks, facts) };
  const keys = blocks.take(4 * Math.ceil(count / 4));
  const keySink: Sink = {
    bindings: (lanes) => [{ name: "y", type: `array<${laneType("u32", lanes)}>`, source: keys, access: "write" }],
    code: () => "fn store(at: u32, s: Result) { y[at] = s.key; }",
  };
  const passes = [...foldPasses(fold, source, keySink, steps, blocks, facts), packPass(count, kind, flip, keys)];
  return { scratch: blocks.bytes, passes };
};
