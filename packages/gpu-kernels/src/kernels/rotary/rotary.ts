import { elementCount, type TensorSpec } from "@skein/tensor-core";
import type { KernelPlan } from "../../kernel.ts";
import { functionsFor } from "../fused/functions.ts";
import { wgsl } from "../../wgsl.ts";

export interface RotaryParams {
  readonly base: number;
  readonly offset: number;
  readonly sign: 1 | -1;
}

const workgroupSize = 64;

const word = 2 ** 32;

/** Returns the fractional part of `x`. */
const fraction = (x: number): number => x - Math.floor(x);

/**
 * Returns three words per pair i. The first two words are its frequency `base^(−2i/D) / 2π` in turns per position, as a
 * 64-bit binary fraction. The third word is its angle at `offset`, in turns, as a 32-bit binary fraction. Position
 * times frequency, modulo one turn, is then an integer product, whose rounding error does not grow with the position.
 * No table of all positions is needed.
 */
const frequencies = (half: number, { base, offset }: RotaryParams): Uint32Array => {
  const words = new Uint32Array(3 * half);
  for (let i = 0; i < half; i++) {
    const turns = base ** (-i / half) / (2 * Math.PI);
    const scaled = fraction(turns) * word;
    words.set([scaled, fraction(scaled) * word, fraction(offset * turns) * word].map(Math.floor), 3 * i);
  }
  return words;
};

/**
 * Returns the plan that rotates the pairs (i, i + D/2) of each row by `sign · (t + offset) · base^(−2i/D)`, for
 * position t and row width D. One invocation processes up to `rowsEach` rows of one position, and computes their common
 * angle once. If D/2 is a multiple of 4, each invocation processes four pairs.
 *
 * Error of an angle: 2⁻³² turns. Flops: 3 per element, and about 40 per angle.
 */
export const rotaryPlan = ({ shape }: TensorSpec, params: RotaryParams): KernelPlan => {
  const [positions, width] = shape.slice(-2) as [number, number];
  const half = width / 2;
  const outer = elementCount(shape.slice(0, -2));
  const wide = half % 4 === 0;
  const step = wide ? 4 : 1;
  const columns = half / step;
  const rowsEach = Math.min(4, outer);
  const blocks = Math.ceil(outer / rowsEach);
  const items = blocks * positions * columns;
  const type = wide ? "array<vec4<f32>>" : "array<f32>";
  const lanes = [0, 1, 2, 3].map((lane) => `angle_at(position, ${wide ? `4u * column + ${lane}u` : "column"})`);
  const body = wgsl`
    let turns = vec4<u32>(${wide ? lanes.join(", ") : lanes[0]!});
    // Quarter turns to the nearest, and what is left of at most half a quarter, in radians.
    let quarter = (turns + vec4<u32>(0x20000000u)) >> vec4<u32>(30u);
    let rest = vec4<f32>(bitcast<vec4<i32>>(turns - (quarter << vec4<u32>(30u)))) * ${(2 * Math.PI) / word};
    let n = bitcast<vec4<i32>>(quarter);
    let sine = ${params.sign < 0 ? "-" : ""}quarter_wave(rest, n);
    let cosine = quarter_wave(rest, n + vec4<i32>(1));
    for (var k = 0u; k < ${rowsEach}u; k++) {
      let row = block * ${rowsEach}u + k;
      if (row >= sizes.outer) { break; }
      let first = (row * ${positions}u + position) * ${2 * columns}u + column;
      let a = x[first];
      let b = x[first + ${columns}u];
      y[first] = a * cosine${wide ? "" : ".x"} - b * sine${wide ? "" : ".x"};
      y[first + ${columns}u] = b * cosine${wide ? "" : ".x"} + a * sine${wide ? "" : ".x"};
    }
  `;
  return {
    constants: [new Uint8Array(frequencies(half, params).buffer)],
    passes: [
      {
        label: "rotary",
        bindings: [
          { name: "x", type, source: { input: 0 }, access: "read" },
          { name: "frequency", type: "array<u32>", source: { constants: 0 }, access: "read" },
          { name: "y", type, source: { output: 0 }, access: "write" },
        ],
        workgroupSize,
        groups: Math.ceil(items / workgroupSize),
        code: wgsl`
          ${functionsFor("quarter_wave(multiply_high(")}
          fn angle_at(position: u32, pair: u32) -> u32 {
            return position * frequency[3u * pair] + multiply_high(position, frequency[3u * pair + 1u]) + frequency[3u * pair + 2u];
          }
          fn main(group: u32, lane: u32) {
            let item = group * ${workgroupSize}u + lane;
            if (item >= sizes.items) { return; }
            let place = item / ${columns}u;
            let column = item - place * ${columns}u;
            let block = place / ${positions}u;
            let position = place - block * ${positions}u;
            ${body}
          }
        `,
        sizes: { items, outer },
      },
    ],
  };
};
