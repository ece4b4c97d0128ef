import type { Pass } from "../../kernel.ts";
import type { Gather } from "./gather.ts";
import { phasesOf, rowsOf } from "./gather.ts";
import { pixelFunctions, positionFunctions, type Stored, opaqueBound } from "./gather-wgsl.ts";
import type { Geometry } from "./geometry.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

/**
 * Computes a `Gather` by its definition, with one invocation per element of the target. Reference for tests of the
 * other variants.
 */
export const directPass = (gather: Gather, operands: Stored = "f32", result: Stored = operands): Pass => {
  const { inner, columns, groups, vertical, horizontal, transposed } = gather;
  const rows = rowsOf(gather);
  const index = transposed
    ? `(tap * ${columns}u + column) * ${groups * inner}u + channels * ${inner}u + q`
    : `(tap * ${inner}u + q) * ${groups * columns}u + channels * ${columns}u + column`;
  const code = wgsl`
    ${positionFunctions(gather)}
    ${pixelFunctions(gather)}
    fn main(group: u32, lane: u32) {
      var rest = group * ${workgroupSize}u + lane;
      let column = rest % ${columns}u;
      rest = rest / ${columns}u;
      let channels = rest % ${groups}u;
      rest = rest / ${groups}u;
      let phase = phase_of(rest % ${phasesOf(gather)}u);
      let row = rest / ${phasesOf(gather)}u;
      let pixel = target_of(row, phase);
      if (pixel < 0) { return; }
      let at = position_of(row, phase);
      var sum = 0.0;
      for (var tap_y = 0u; tap_y < ${opaqueBound("phase.taps.x")}; tap_y++) {
        for (var tap_x = 0u; tap_x < ${opaqueBound("phase.taps.y")}; tap_x++) {
          let from_pixel = pixel_at(at, tap_y, tap_x);
          if (from_pixel < 0) { continue; }
          let tap = (phase.first.x + tap_y * ${vertical.step}u) * ${horizontal.kernel}u + phase.first.y + tap_x * ${horizontal.step}u;
          for (var q = 0u; q < ${opaqueBound(inner)}; q++) {
            sum += f32(source[u32(from_pixel) * ${groups * inner}u + channels * ${inner}u + q]) * f32(weight[${index}]);
          }
        }
      }
      result[u32(pixel) * ${groups * columns}u + channels * ${columns}u + column] = ${result}(sum);
    }
  `;
  return {
    label: "convolution direct",
    bindings: [
      { name: "source", type: `array<${operands}>`, source: { input: 0 }, access: "read" },
      { name: "weight", type: `array<${operands}>`, source: { input: 1 }, access: "read" },
      { name: "result", type: `array<${result}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil((rows * phasesOf(gather) * groups * columns) / workgroupSize),
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { rows, zero: 0 },
  };
};

/**
 * Computes `dw[r, c, q, o] = Σ x[n, i·s − p + r·d, …, q] · g[n, i, …, o]` by its definition, with one invocation per
 * element.
 */
export const directWeightPass = (geometry: Geometry, operands: Stored = "f32", result: Stored = operands): Pass => {
  const { batch, image, channels, kernel, positions, outChannels, stride, before, dilation, groups } = geometry;
  const [inner, columns] = [channels / groups, outChannels / groups];
  const code = wgsl`
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (at >= ${kernel[0] * kernel[1] * inner * outChannels}u) { return; }
      let o = at % ${outChannels}u;
      let q = (at / ${outChannels}u) % ${inner}u;
      let tap = at / ${outChannels * inner}u;
      var sum = 0.0;
      for (var n = 0u; n < ${opaqueBound(batch)}; n++) {
        for (var i = 0u; i < ${opaqueBound(positions[0])}; i++) {
          let y = i32(i * ${stride[0]}u + (tap / ${kernel[1]}u) * ${dilation[0]}u) - ${before[0]};
          if (y < 0 || y >= ${image[0]}) { continue; }
          for (var j = 0u; j < ${opaqueBound(positions[1])}; j++) {
            let x = i32(j * ${stride[1]}u + (tap % ${kernel[1]}u) * ${dilation[1]}u) - ${before[1]};
            if (x < 0 || x >= ${image[1]}) { continue; }
            let pixel = (n * ${image[0]}u + u32(y)) * ${image[1]}u + u32(x);
            sum += f32(images[pixel * ${channels}u + (o / ${columns}u) * ${inner}u + q])
              * f32(cotangents[((n * ${positions[0]}u + i) * ${positions[1]}u + j) * ${outChannels}u + o]);
          }
        }
      }
      result[at] = ${result}(sum);
    }
  `;
  return {
    label: "convolution weight direct",
    bindings: [
      { name: "images", type: `array<${operands}>`, source: { input: 0 }, access: "read" },
      { name: "cotangents", type: `array<${operands}>`, source: { input: 1 }, access: "read" },
      { name: "result", type: `array<${result}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil((kernel[0] * kernel[1] * inner * outChannels) / workgroupSize),
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { zero: 0 },
  };
};
