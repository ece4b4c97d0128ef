import type { DeviceFacts, Pass } from "../../kernel.ts";
import { foldPasses } from "../reduce/fold-passes.ts";
import { type Fold, laneType, type Sink, type Source } from "../reduce/fold.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { type ElementSelection, placementPasses } from "./nonzero.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * WGSL of `held_at` that selects elements by a magnitude bound. Magnitudes are compared as bits without the sign, which
 * have the same order. A NaN bound is treated as infinite, and zeros are never selected.
 */
const selectionCode = wgsl`
  fn held_at(v: u32) -> vec4<u32> {
    let least = clamp(bound[0] & 0x7fffffffu, 1u, 0x7f800000u);
    var held: vec4<u32>;
    for (var c = 0u; c < 4u; c++) {
      let keys = x[min(4u * v + c, sizes.last)] & vec4<u32>(0x7fffffffu);
      let places = 16u * v + 4u * c + vec4<u32>(0u, 1u, 2u, 3u);
      let bytes = select(vec4<u32>(), vec4<u32>(1u, 0x100u, 0x10000u, 0x1000000u), (keys >= vec4<u32>(least)) & (places < vec4<u32>(sizes.count)));
      held[c] = (bytes.x | bytes.y) | (bytes.z | bytes.w);
    }
    return held;
  }
`;

const greatestFold: Fold = {
  label: "compact, greatest",
  fields: [{ name: "key", type: "u32", start: "0u" }],
  join: () => ({ fields: ["max(a.key, b.key)"] }),
};

const magnitudes: Source = {
  bindings: (lanes) => [{ name: "x", type: `array<${laneType("u32", lanes)}>`, source: { input: 0 }, access: "read" }],
  code: (lanes) =>
    `${keyFunction("magnitude", false, lanes)}\nfn lift(at: u32, place: u32, column: u32) -> State { return State(key_of(x[at])); }`,
};

/**
 * Fold sink that converts the largest key to a magnitude by clearing the sign bit. The key of NaN is all ones, which
 * stays a NaN.
 */
const greatestSink: Sink = {
  bindings: (lanes) => [
    { name: "greatest", type: `array<${laneType("u32", lanes)}>`, source: { output: 3 }, access: "write" },
  ],
  code: (lanes) =>
    `fn store(at: u32, s: Result) { greatest[at] = s.key & ${lanes === 1 ? "0x7fffffffu" : "vec4<u32>(0x7fffffffu)"}; }`,
};

/**
 * Selects the first `capacity` of `count` f32 values whose magnitude is at least a bound, with the method of
 * `nonzeroPasses`, and computes the maximum magnitude with a fold.
 *
 * Bytes: the vector is read three times (twice if it fits in one tile), 8·capacity bytes are written.
 */
export const compactPasses = (
  count: number,
  capacity: number,
  blocks: ScratchBlocks,
  facts: DeviceFacts,
): readonly Pass[] => {
  const selection: ElementSelection = {
    label: "compact",
    bindings: [
      { name: "x", type: "array<vec4<u32>>", source: { input: 0 }, access: "read" },
      { name: "bound", type: "array<u32>", source: { input: 1 }, access: "read" },
    ],
    code: selectionCode,
    put: {
      bindings: [{ name: "values", type: "array<u32>", source: { output: 0 }, access: "write" }],
      code: "values[at] = x[own / 4u][own % 4u];",
      clear: " values[at] = 0u;",
    },
    indices: { output: 1 },
    found: { output: 2 },
    countsAll: true,
    last: Math.max(1, Math.ceil(count / 4)) - 1,
  };
  const fold = foldPasses(greatestFold, magnitudes, greatestSink, [{ outer: 1, size: count, inner: 1 }], blocks, facts);
  return [...placementPasses(selection, count, capacity, blocks), ...fold];
};
