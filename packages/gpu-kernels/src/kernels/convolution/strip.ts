import type { Pass } from "../../kernel.ts";
import { type Gather, phasesOf, rowsOf } from "./gather.ts";
import {
  channelsType,
  isVectored,
  pixelFunctions,
  positionFunctions,
  putFunction,
  type Stored,
  opaqueBound,
} from "./gather-wgsl.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export interface StripOptions {
  /** Number of target pixels per invocation. */
  readonly pixels: number;
  readonly operands: Stored;
  readonly result: Stored;
}

/**
 * Whether the pixels of a strip are in one image row and have overlapping taps, so that each source pixel is loaded
 * once for all taps.
 */
const isSliding = ({ horizontal }: Gather, pixels: number): boolean =>
  horizontal.phases.length === 1 &&
  horizontal.stride === 1 &&
  Math.abs(horizontal.dilation) === 1 &&
  horizontal.positions % pixels === 0 &&
  horizontal.kernel <= 7;

/**
 * Returns WGSL that loads the weights of a tap into `w0 … w3`. Each vector holds four columns of one row: rows q … q+3
 * if the channels are vectored, otherwise only row q. If transposed and vectored, each vector holds rows q … q+3 of one
 * column.
 */
const weightLoads = ({ inner, columns, groups, transposed }: Gather, tap: string): string[] => {
  const depth = isVectored(inner) ? 4 : 1;
  if (!transposed) {
    const width = groups * columns;
    return range(depth).map((j) => {
      const row = `((${tap}) * ${inner}u + q + ${j}u) * ${width}u + channels * ${columns}u`;
      if (isVectored(columns)) return `vec4<f32>(weight[(${row} + column) / 4u])`;
      return `vec4<f32>(${range(4)
        .map((i) => `f32(weight[${row} + min(column + ${i}u, ${columns - 1}u)])`)
        .join(", ")})`;
    });
  }
  const at = (i: number): string =>
    `((${tap}) * ${columns}u + min(column + ${i}u, ${columns - 1}u)) * ${groups * inner}u + channel + q`;
  if (isVectored(inner)) return range(4).map((i) => `vec4<f32>(weight[(${at(i)}) / 4u])`);
  return [
    `vec4<f32>(${range(4)
      .map((i) => `f32(weight[${at(i)}])`)
      .join(", ")})`,
  ];
};

const products = ({ inner, transposed }: Gather, sum: string, s: string): string => {
  if (!isVectored(inner)) return `${sum} += ${s} * w0;`;
  if (transposed) return `${sum} += vec4<f32>(dot(${s}, w0), dot(${s}, w1), dot(${s}, w2), dot(${s}, w3));`;
  return range(4)
    .map((j) => `${sum} += ${s}[${j}] * w${j};`)
    .join(" ");
};

/**
 * Computes a gather without workgroup memory: each invocation sums four columns of a strip of pixels in registers, and
 * adjacent invocations share pixels or weights through the cache. Used for few channels, because blocks would be mostly
 * padding, and for software adapters, because barriers cost more than loads.
 *
 * Flops: 2 · pixels · taps · inner · columns. Loads per tap and four channels: `pixels + 4` vectors for `16 · pixels`
 * products.
 */
export const stripPass = (gather: Gather, { pixels, operands, result }: StripOptions): Pass => {
  const { inner, columns, groups, vertical, horizontal, transposed } = gather;
  const vectored = isVectored(inner);
  const columnVectors = Math.ceil(columns / 4);
  const phases = phasesOf(gather);
  const rows = rowsOf(gather);
  const strips = Math.ceil(rows / pixels);
  const sliding = isSliding(gather, pixels);
  const [type, zero] = vectored ? ["vec4<f32>", "vec4<f32>()"] : ["f32", "0.0"];
  // Always loads. If the pixel is outside of the image, another pixel is loaded instead, because loads without branches
  // overlap.
  const load = (name: string, pixel: string): string =>
    `let ${name} = select(${zero}, ${type}(source[(u32(max(${pixel}, 0)) * ${groups * inner}u + channel + q)${vectored ? " / 4u" : ""}]), ${pixel} >= 0);`;
  const tap = (x: string): string =>
    `(phase.first.x + tap_y * ${vertical.step}u) * ${horizontal.kernel}u + phase.first.y + ${x} * ${horizontal.step}u`;
  const weights = (x: string): string[] => weightLoads(gather, tap(x)).map((text, j) => `let w${j} = ${text};`);
  const step = vectored ? 4 : 1;

  const depth = inner > step ? opaqueBound(inner) : `${inner}u`;

  /**
   * Returns WGSL of the taps in one kernel row, with each pixel loaded once. Pixel t is counted from the first pixel
   * that any tap reads.
   */
  const slidingTaps = (): string => {
    const backwards = horizontal.dilation < 0;
    const reach = horizontal.kernel - 1;
    const seen = range(pixels + reach).map((t) => ({ t, from: t - (backwards ? reach : 0) }));
    const tapsOfLine = range(horizontal.kernel).map(
      (c) => wgsl`
        {
          ${weights(`${c}u`)}
          ${range(pixels).map((e) => products(gather, `sum_${e}`, `s${e + (backwards ? reach - c : c)}`))}
        }
      `,
    );
    return wgsl`
      ${seen.map(({ t, from }) => `let p${t} = pixel_at(at_0 + vec3<i32>(${from}, 0, ${from}), tap_y, 0u);`)}
      for (var q = 0u; q < ${depth}; q += ${step}u) {
        ${seen.map(({ t }) => load(`s${t}`, `p${t}`))}
        ${tapsOfLine}
      }
    `;
  };
  const tapByTap = (): string => wgsl`
    for (var tap_x = 0u; tap_x < ${opaqueBound("phase.taps.y")}; tap_x++) {
      ${range(pixels).map((e) => `let p${e} = pixel_at(at_${e}, tap_y, tap_x);`)}
      for (var q = 0u; q < ${depth}; q += ${step}u) {
        ${range(pixels).map((e) => load(`s${e}`, `p${e}`))}
        ${weights("tap_x")}
        ${range(pixels).map((e) => products(gather, `sum_${e}`, `s${e}`))}
      }
    }
  `;
  const declarePositions = range(pixels).map(
    (e) => wgsl`
      ${sliding && e > 0 ? "" : `let at_${e} = position_of(row + ${e}u, phase);`}
      var sum_${e} = vec4<f32>();
    `,
  );

  const code = wgsl`
    ${positionFunctions(gather)}
    ${pixelFunctions(gather)}
    ${putFunction(gather, result, "")}
    fn main(group: u32, lane: u32) {
      let index = group * ${workgroupSize}u + lane;
      let column = (index % ${columnVectors}u) * 4u;
      var rest = index / ${columnVectors}u;
      let channels = rest % ${groups}u;
      rest = rest / ${groups}u;
      let phase = phase_of(rest % ${phases}u);
      let row = (rest / ${phases}u) * ${pixels}u;
      if (row >= sizes.rows) { return; }
      let channel = channels * ${inner}u;
      ${declarePositions}
      for (var tap_y = 0u; tap_y < ${opaqueBound("phase.taps.x")}; tap_y++) {
        ${sliding ? slidingTaps() : tapByTap()}
      }
      ${range(pixels).map((e) => `put(target_of(row + ${e}u, phase), column, channels, sum_${e});`)}
    }
  `;
  return {
    label: `convolution strip ${pixels}${sliding ? " sliding" : ""}`,
    bindings: [
      { name: "source", type: channelsType(operands, vectored), source: { input: 0 }, access: "read" },
      {
        name: "weight",
        type: channelsType(operands, isVectored(transposed ? inner : columns)),
        source: { input: 1 },
        access: "read",
      },
      { name: "result", type: channelsType(result, isVectored(columns)), source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil((columnVectors * groups * phases * strips) / workgroupSize),
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { rows, zero: 0 },
  };
};
