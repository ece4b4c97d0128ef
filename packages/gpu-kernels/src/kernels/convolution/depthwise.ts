import type { Pass } from "../../kernel.ts";
import { type Gather, phasesOf, rowsOf } from "./gather.ts";
import {
  channelsType,
  isVectored,
  pixelFunctions,
  positionFunctions,
  putFunction,
  opaqueBound,
} from "./gather-wgsl.ts";
import type { StripOptions } from "./strip.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/**
 * Computes a `Gather` whose groups have one image channel each. Four adjacent columns of the target are computed
 * together, each from its own channel, because there is no sum over channels. (The image gradient sums only over the
 * few outputs of a channel.)
 *
 * Flops: 2 · pixels · taps · outChannels; bound by memory.
 */
export const depthwisePass = (gather: Gather, { pixels, operands, result }: StripOptions): Pass => {
  const { inner, columns, groups, vertical, horizontal } = gather;
  const [sources, targets] = [groups * inner, groups * columns];
  const width = Math.max(sources, targets);
  const vectored = sources === targets && isVectored(groups);
  const columnVectors = Math.ceil(targets / 4);
  const phases = phasesOf(gather);
  const rows = rowsOf(gather);
  const strips = Math.ceil(rows / pixels);
  // Treated as one group, because every column computes its own channel.
  const single: Gather = { ...gather, groups: 1, columns: targets };
  const channel = (i: number): string => `(min(column + ${i}u, ${targets - 1}u) / ${columns}u) * ${inner}u + j`;
  const four = (text: (i: number) => string): string => `vec4<f32>(${range(4).map(text).join(", ")})`;
  const weight = vectored
    ? `vec4<f32>(weight[(tap * ${width}u + column) / 4u])`
    : four(
        (i) => `f32(weight[tap * ${width}u + ${inner === 1 ? `min(column + ${i}u, ${targets - 1}u)` : channel(i)}])`,
      );
  const value = vectored
    ? `vec4<f32>(source[(u32(pixel) * ${sources}u + column) / 4u])`
    : four((i) => `f32(source[u32(pixel) * ${sources}u + ${channel(i)}])`);
  const code = wgsl`
    ${positionFunctions(gather)}
    ${pixelFunctions(gather)}
    ${putFunction(single, result, "")}
    fn main(group: u32, lane: u32) {
      let index = group * ${workgroupSize}u + lane;
      let column = (index % ${columnVectors}u) * 4u;
      let rest = index / ${columnVectors}u;
      let phase = phase_of(rest % ${phases}u);
      let row = (rest / ${phases}u) * ${pixels}u;
      if (row >= sizes.rows) { return; }
      ${range(pixels).map((e) => `let at_${e} = position_of(row + ${e}u, phase); var sum_${e} = vec4<f32>();`)}
      for (var tap_y = 0u; tap_y < ${opaqueBound("phase.taps.x")}; tap_y++) {
        for (var tap_x = 0u; tap_x < ${opaqueBound("phase.taps.y")}; tap_x++) {
          let tap = (phase.first.x + tap_y * ${vertical.step}u) * ${horizontal.kernel}u + phase.first.y + tap_x * ${horizontal.step}u;
          for (var j = 0u; j < ${inner > 1 ? opaqueBound(inner) : "1u"}; j++) {
            let w = ${weight};
            ${range(pixels).map(
              (e) => `{ let pixel = pixel_at(at_${e}, tap_y, tap_x); if (pixel >= 0) { sum_${e} += ${value} * w; } }`,
            )}
          }
        }
      }
      ${range(pixels).map((e) => `put(target_of(row + ${e}u, phase), column, 0u, sum_${e});`)}
    }
  `;
  return {
    label: `convolution depthwise ${pixels}`,
    bindings: [
      { name: "source", type: channelsType(operands, vectored), source: { input: 0 }, access: "read" },
      { name: "weight", type: channelsType(operands, vectored), source: { input: 1 }, access: "read" },
      { name: "result", type: channelsType(result, isVectored(targets)), source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil((columnVectors * phases * strips) / workgroupSize),
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { rows, zero: 0 },
  };
};
