import type { KernelPlan, Pass } from "../../kernel.ts";
import { isDisjoint, type PoolingGeometry } from "./geometry.ts";
import {
  beatsFunction,
  type Lanes,
  lanesOf,
  coordinatesFunction,
  vectorIndex,
  windowBounds,
  windowsOver,
} from "./pooling-wgsl.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

const groupsFor = (count: number): number => Math.ceil(count / workgroupSize);

/**
 * Returns WGSL that declares `best`, the maximum of a window, and `at_best`, the index of its first pixel with this
 * value in the window (`r · width + c`). The bounds of the window must be declared before.
 */
const findMaximum = ({ window, image }: PoolingGeometry, lanes: Lanes): string => wgsl`
  var best = ${lanes.float}();
  var at_best = ${lanes.word}();
  var begun = false;
  for (var row = first_y; row < end_y; row++) {
    for (var column = first_x; column < end_x; column++) {
      let value = x[${vectorIndex("place.x", "row", "column", "place.w", image, lanes)}];
      let better = beats(value, best) | ${lanes.flag}(!begun);
      begun = true;
      best = select(best, value, better);
      at_best = select(at_best, ${lanes.word}(u32(i32(row) - corner_y) * ${window[1]}u + u32(i32(column) - corner_x)), better);
    }
  }
`;

/**
 * Computes the gradient of a maximum for windows without common pixels. One invocation per window reads the window once
 * and writes all pixels from the window's corner to the next window's corner, including pixels that no window covers.
 *
 * Bytes: the image gradient is written, the image and the cotangent are read.
 */
const disjointPass = (geometry: PoolingGeometry): Pass => {
  const { batch, image, channels, positions, stride, before } = geometry;
  const lanes = lanesOf(channels);
  // Number of cells, one stride long each, that cover the image. The last cell may be after the last window.
  const cells = ([0, 1] as const).map((dim) =>
    Math.max(positions[dim], Math.ceil((image[dim] + before[dim]) / stride[dim])),
  );
  const [rows, columns] = cells as [number, number];
  const count = batch * rows * columns * lanes.perPixel;
  const { float, word, flag } = lanes;
  const index = vectorIndex("place.x", "row", "column", "place.w", image, lanes);
  const cellEnd = (name: string, dim: 0 | 1): string => `u32(clamp(corner_${name} + ${stride[dim]}, 0, ${image[dim]}))`;
  const code = wgsl`
    ${coordinatesFunction("place_of", rows, columns, lanes)}
    ${beatsFunction(lanes)}
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (at >= sizes.count) { return; }
      let place = place_of(at);
      ${windowBounds(geometry, "place.y", "place.z")}
      let is_window = place.y < ${positions[0]}u && place.z < ${positions[1]}u;
      ${findMaximum(geometry, lanes)}
      var share = ${float}();
      if (is_window) { share = g[${vectorIndex("place.x", "place.y", "place.z", "place.w", positions, lanes)}]; }
      for (var row = first_y; row < ${cellEnd("y", 0)}; row++) {
        for (var column = first_x; column < ${cellEnd("x", 1)}; column++) {
          let inside = is_window && row < end_y && column < end_x;
          let own = at_best == ${word}(u32(i32(row) - corner_y) * ${geometry.window[1]}u + u32(i32(column) - corner_x));
          y[${index}] = select(${float}(), share, own & ${flag}(inside));
        }
      }
    }
  `;
  return {
    label: "max-pool gradient, disjoint windows",
    bindings: [
      { name: "x", type: `array<${float}>`, source: { input: 0 }, access: "read" },
      { name: "g", type: `array<${float}>`, source: { input: 1 }, access: "read" },
      { name: "y", type: `array<${float}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: groupsFor(count),
    code,
    sizes: { count },
  };
};

/** Writes the position of each window's first maximum, one word per window. */
const positionsPass = (geometry: PoolingGeometry): Pass => {
  const { batch, channels, positions } = geometry;
  const lanes = lanesOf(channels);
  const count = batch * positions[0] * positions[1] * lanes.perPixel;
  const code = wgsl`
    ${coordinatesFunction("place_of", positions[0], positions[1], lanes)}
    ${beatsFunction(lanes)}
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (at >= sizes.count) { return; }
      let place = place_of(at);
      ${windowBounds(geometry, "place.y", "place.z")}
      ${findMaximum(geometry, lanes)}
      found[at] = at_best;
    }
  `;
  return {
    label: "max-pool positions of maxima",
    bindings: [
      { name: "x", type: `array<${lanes.float}>`, source: { input: 0 }, access: "read" },
      { name: "found", type: `array<${lanes.word}>`, source: { scratch: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: groupsFor(count),
    code,
    sizes: { count },
  };
};

/**
 * Computes for each pixel of the image the sum of the WGSL expression `share` over the windows that contain the pixel,
 * in row-major order. `share` may use `i`, `j` and `from` (index of the window's vector).
 */
const gatherPass = (geometry: PoolingGeometry, share: string, rest: Pick<Pass, "label" | "bindings">): Pass => {
  const { batch, image, channels, positions } = geometry;
  const lanes = lanesOf(channels);
  const count = batch * image[0] * image[1] * lanes.perPixel;
  const code = wgsl`
    ${coordinatesFunction("place_of", image[0], image[1], lanes)}
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (at >= sizes.count) { return; }
      let place = place_of(at);
      ${windowsOver(geometry, "place.y", "place.z")}
      var sum = ${lanes.float}();
      for (var i = first_i; i < end_i; i++) {
        for (var j = first_j; j < end_j; j++) {
          let from_window = ${vectorIndex("place.x", "i", "j", "place.w", positions, lanes)};
          sum += ${share};
        }
      }
      y[at] = sum;
    }
  `;
  return { ...rest, workgroupSize, groups: groupsFor(count), code, sizes: { count } };
};

/**
 * Returns the plan of the gradient of a maximum: each cotangent is added to the first maximum of its window. The
 * forward pass stores no index. Overlapping windows are searched once, then every pixel checks the windows that contain
 * it.
 */
export const maxPoolBackwardPlan = (geometry: PoolingGeometry): KernelPlan => {
  if (isDisjoint(geometry)) return { passes: [disjointPass(geometry)] };
  const { batch, channels, positions, window, stride, before } = geometry;
  const lanes = lanesOf(channels);
  const own = `${lanes.word}((place.y + ${before[0]}u - i * ${stride[0]}u) * ${window[1]}u + place.z + ${before[1]}u - j * ${stride[1]}u)`;
  return {
    scratch: [4 * batch * positions[0] * positions[1] * channels],
    passes: [
      positionsPass(geometry),
      gatherPass(geometry, `select(${lanes.float}(), g[from_window], found[from_window] == ${own})`, {
        label: "max-pool gradient",
        bindings: [
          { name: "found", type: `array<${lanes.word}>`, source: { scratch: 0 }, access: "read" },
          { name: "g", type: `array<${lanes.float}>`, source: { input: 1 }, access: "read" },
          { name: "y", type: `array<${lanes.float}>`, source: { output: 0 }, access: "write" },
        ],
      }),
    ],
  };
};

/**
 * Computes the gradient of a mean: each pixel sums the cotangents of its windows, each divided by the number of pixels
 * that the window averages.
 */
export const meanPoolBackwardPass = (geometry: PoolingGeometry, countPadding: boolean): Pass => {
  const { image, channels, window, stride, before } = geometry;
  const { float } = lanesOf(channels);
  const extent = (dim: 0 | 1, at: string): string => {
    const corner = `i32(${at} * ${stride[dim]}u) - ${before[dim]}`;
    return `(min(${corner} + ${window[dim]}, ${image[dim]}) - max(${corner}, 0))`;
  };
  const divisor = countPadding ? `${window[0] * window[1]}.0` : `f32(${extent(0, "i")} * ${extent(1, "j")})`;
  return gatherPass(geometry, `g[from_window] / ${divisor}`, {
    label: "mean-pool gradient",
    bindings: [
      { name: "g", type: `array<${float}>`, source: { input: 0 }, access: "read" },
      { name: "y", type: `array<${float}>`, source: { output: 0 }, access: "write" },
    ],
  });
};
