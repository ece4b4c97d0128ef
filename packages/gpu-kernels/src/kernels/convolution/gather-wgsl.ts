import type { Axis, Gather } from "./gather.ts";
import { wgsl } from "../../wgsl.ts";

// WGSL of a gather: the source positions of a target pixel, and its weights. A position is a `vec3<i32>`: pixel index,
// row and column for tap 0, which may be outside of the image.

/** Element type of the operands and of the result in memory. */
export type Stored = "f32" | "f16";

/** Whether the channels per group are a multiple of four, so that a vector holds four adjacent channels. */
export const isVectored = (perGroup: number): boolean => perGroup % 4 === 0;

/**
 * Returns a loop bound that the shader compiler cannot know, because `sizes.zero`, which is 0, is added. Mesa unrolls
 * loops whose length (or maximum length, as with `min`) is known, and takes seconds to compile such nested loops with a
 * branch at each tap.
 */
export const opaqueBound = (bound: string | number): string =>
  `(${typeof bound === "number" ? `${bound}u` : bound} + sizes.zero)`;

/** Returns the WGSL type of a binding of channels. */
export const channelsType = (dtype: Stored, vectored: boolean): string =>
  `array<${vectored ? `vec4<${dtype}>` : dtype}>`;

/** Whether every tap of every target position is inside the source image. */
const staysInside = ({ phases, positions, stride, dilation, source }: Axis): boolean =>
  phases.every(({ taps, offset }) => {
    const ends = [0, (positions - 1) * stride].flatMap((at) =>
      [0, (taps - 1) * dilation].map((tap) => at + offset + tap),
    );
    return taps === 0 || (Math.min(...ends) >= 0 && Math.max(...ends) < source);
  });

const phaseBody = (name: string, { phases }: Axis): string => {
  const fields = phases.map(({ first, taps, offset }) => `vec3<i32>(${first}, ${taps}, ${offset})`);
  const [only] = fields;
  if (fields.length === 1) return `fn phase_${name}(p: u32) -> vec3<i32> { return ${only}; }`;
  const cases = fields.slice(0, -1).map((field, p) => `case ${p}u: { return ${field}; }`);
  return `fn phase_${name}(p: u32) -> vec3<i32> { switch (p) { ${cases.join(" ")} default: { return ${fields.at(-1)}; } } }`;
};

/**
 * Returns WGSL of `dividend / divisor` for a divisor with few possible values. A division by a constant compiles to a
 * multiplication.
 */
const quotient = (dividend: string, divisor: string, values: readonly number[]): string =>
  values
    .filter((value) => value > 0)
    .reduce(
      (text, value) =>
        text === "" ? `${dividend} / ${value}u` : `select(${text}, ${dividend} / ${value}u, ${divisor} == ${value}u)`,
      "",
    ) || "0u";

/**
 * Returns WGSL of the struct `Phase` and of three functions. `phase_of(p)` returns phase p. `position_of(row, phase)`
 * returns the source position for a row of the product. `target_of(row, phase)` returns the target pixel, or −1 if the
 * phase has no pixel in this row. Uses `sizes.rows`.
 */
export const positionFunctions = ({ vertical, horizontal }: Gather): string => {
  const [py, px] = [vertical.phases.length, horizontal.phases.length];
  const inTarget = [
    ...(vertical.positions * py > vertical.target ? [`y < ${vertical.target}u`] : []),
    ...(horizontal.positions * px > horizontal.target ? [`x < ${horizontal.target}u`] : []),
  ];
  return wgsl`
    struct Phase { start: vec2<u32>, first: vec2<u32>, taps: vec2<u32>, offset: vec2<i32> }
    ${phaseBody("y", vertical)}
    ${phaseBody("x", horizontal)}
    fn phase_of(p: u32) -> Phase {
      let start = vec2<u32>(p / ${px}u, p % ${px}u);
      let y = phase_y(start.x);
      let x = phase_x(start.y);
      return Phase(start, vec2<u32>(vec2<i32>(y.x, x.x)), vec2<u32>(vec2<i32>(y.y, x.y)), vec2<i32>(y.z, x.z));
    }
    fn place_of(row: u32) -> vec3<u32> {
      let line = row / ${horizontal.positions}u;
      return vec3<u32>(line / ${vertical.positions}u, line % ${vertical.positions}u, row % ${horizontal.positions}u);
    }
    fn position_of(row: u32, phase: Phase) -> vec3<i32> {
      let place = place_of(min(row, sizes.rows - 1u));
      let y = i32(place.y * ${vertical.stride}u) + phase.offset.x;
      let x = i32(place.z * ${horizontal.stride}u) + phase.offset.y;
      return vec3<i32>((i32(place.x) * ${vertical.source} + y) * ${horizontal.source} + x, y, x);
    }
    fn target_of(row: u32, phase: Phase) -> i32 {
      let place = place_of(row);
      let y = place.y * ${py}u + phase.start.x;
      let x = place.z * ${px}u + phase.start.y;
      return select(-1, i32((place.x * ${vertical.target}u + y) * ${horizontal.target}u + x), ${["row < sizes.rows", ...inTarget].join(" && ")});
    }
  `;
};

/**
 * Returns WGSL of two functions. `pixel_at(at, tap_y, tap_x) -> i32` returns the source pixel of a tap, or −1 outside
 * of the image. `split_tap(tap, taps_x) -> vec2<u32>` returns the row and column of a tap.
 */
export const pixelFunctions = ({ vertical, horizontal }: Gather): string => {
  const checks = [
    ...(staysInside(vertical) ? [] : [`u32(at.y + dy) < ${vertical.source}u`]),
    ...(staysInside(horizontal) ? [] : [`u32(at.z + dx) < ${horizontal.source}u`]),
  ];
  const counts = [...new Set(horizontal.phases.map(({ taps }) => taps))];
  return wgsl`
    fn pixel_at(at: vec3<i32>, tap_y: u32, tap_x: u32) -> i32 {
      let dy = i32(tap_y) * ${vertical.dilation};
      let dx = i32(tap_x) * ${horizontal.dilation};
      return select(-1, at.x + dy * ${horizontal.source} + dx, ${checks.length > 0 ? checks.join(" && ") : "true"});
    }
    fn split_tap(tap: u32, taps_x: u32) -> vec2<u32> {
      let y = ${quotient("tap", "taps_x", counts)};
      return vec2<u32>(y, tap - y * taps_x);
    }
  `;
};

/**
 * Returns WGSL of `source_at(at, k, end, phase, channel) -> vec4<f32>`, which returns four source values from k on, `k
 * = tap · inner + q`, with zeros outside of the image and from `end` on. `channel` is the first channel of the group.
 * Reads binding `source`.
 */
export const sourceFunction = (gather: Gather): string => {
  const { inner, groups } = gather;
  if (isVectored(inner))
    return wgsl`
      fn source_at(at: vec3<i32>, k: u32, end: u32, phase: Phase, channel: u32) -> vec4<f32> {
        let tap = split_tap(k / ${inner}u, phase.taps.y);
        let pixel = pixel_at(at, tap.x, tap.y);
        return select(vec4<f32>(), vec4<f32>(source[(u32(max(pixel, 0)) * ${groups * inner}u + channel + k % ${inner}u) / 4u]), pixel >= 0 && k < end);
      }
    `;
  return wgsl`
    fn source_one(at: vec3<i32>, k: u32, end: u32, phase: Phase, channel: u32) -> f32 {
      let tap = split_tap(k / ${inner}u, phase.taps.y);
      let pixel = pixel_at(at, tap.x, tap.y);
      return select(0.0, f32(source[u32(max(pixel, 0)) * ${groups * inner}u + channel + k % ${inner}u]), pixel >= 0 && k < end);
    }
    fn source_at(at: vec3<i32>, k: u32, end: u32, phase: Phase, channel: u32) -> vec4<f32> {
      return vec4<f32>(source_one(at, k, end, phase, channel), source_one(at, k + 1u, end, phase, channel),
        source_one(at, k + 2u, end, phase, channel), source_one(at, k + 3u, end, phase, channel));
    }
  `;
};

/**
 * Returns WGSL of the function that reads the weights from binding `weight`, with k = tap · inner + q. Values from
 * `end` on and after the last column are zeros.
 * - Layout [tap, q, column]: `weight_row(k, end, column, group) -> vec4<f32>` returns four columns at one k.
 * - Transposed layout: `weight_run(k, end, column, phase, group)` returns the values at k … k+3 in one column.
 */
export const weightFunction = ({ inner, columns, groups, horizontal, vertical, transposed }: Gather): string => {
  if (!transposed) {
    const width = groups * columns;
    if (isVectored(columns))
      return wgsl`
        fn weight_row(k: u32, end: u32, column: u32, group: u32) -> vec4<f32> {
          if (k >= end || column >= ${columns}u) { return vec4<f32>(); }
          return vec4<f32>(weight[(k * ${width}u + group * ${columns}u + column) / 4u]);
        }
      `;
    return wgsl`
      fn weight_one(k: u32, column: u32, group: u32) -> f32 {
        if (column >= ${columns}u) { return 0.0; }
        return f32(weight[k * ${width}u + group * ${columns}u + column]);
      }
      fn weight_row(k: u32, end: u32, column: u32, group: u32) -> vec4<f32> {
        if (k >= end) { return vec4<f32>(); }
        return vec4<f32>(weight_one(k, column, group), weight_one(k, column + 1u, group), weight_one(k, column + 2u, group), weight_one(k, column + 3u, group));
      }
    `;
  }
  const index = wgsl`
    let split = split_tap(k / ${inner}u, phase.taps.y);
    let tap = (phase.first.x + split.x * ${vertical.step}u) * ${horizontal.kernel}u + phase.first.y + split.y * ${horizontal.step}u;
    let index = (tap * ${columns}u + column) * ${groups * inner}u + group * ${inner}u + k % ${inner}u;
  `;
  if (isVectored(inner))
    return wgsl`
      fn weight_run(k: u32, end: u32, column: u32, phase: Phase, group: u32) -> vec4<f32> {
        if (k >= end || column >= ${columns}u) { return vec4<f32>(); }
        ${index}
        return vec4<f32>(weight[index / 4u]);
      }
    `;
  return wgsl`
    fn weight_one(k: u32, end: u32, column: u32, phase: Phase, group: u32) -> f32 {
      if (k >= end || column >= ${columns}u) { return 0.0; }
      ${index}
      return f32(weight[index]);
    }
    fn weight_run(k: u32, end: u32, column: u32, phase: Phase, group: u32) -> vec4<f32> {
      return vec4<f32>(weight_one(k, end, column, phase, group), weight_one(k + 1u, end, column, phase, group),
        weight_one(k + 2u, end, column, phase, group), weight_one(k + 3u, end, column, phase, group));
    }
  `;
};

/**
 * Returns WGSL of `put(pixel, column, group, value)`, which writes four columns of a target pixel and omits columns
 * after the last. Writes binding `result` at an offset of `shift` elements.
 */
export const putFunction = ({ columns, groups }: Gather, result: Stored, shift: string): string => {
  const index = `${shift}u32(pixel) * ${groups * columns}u + group * ${columns}u + column`.replace(/^0u \+ /, "");
  if (isVectored(columns))
    return wgsl`
      fn put(pixel: i32, column: u32, group: u32, value: vec4<f32>) {
        if (pixel < 0 || column >= ${columns}u) { return; }
        result[(${index}) / 4u] = vec4<${result}>(value);
      }
    `;
  return wgsl`
    fn put(pixel: i32, column: u32, group: u32, value: vec4<f32>) {
      if (pixel < 0) { return; }
      let index = ${index};
      for (var j = 0u; j < min(4u, ${columns}u - min(column, ${columns}u)); j++) { result[index + j] = ${result}(value[j]); }
    }
  `;
};
