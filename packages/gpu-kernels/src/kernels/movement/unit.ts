import type { DType } from "@skein/tensor-core";
import type { Binding, BindingSource, Pass } from "../../kernel.ts";
import { bitsFunction } from "../../storage.ts";
import { wgsl } from "../../wgsl.ts";

// Number of bytes per unit, the amount of memory that one invocation moves at once. Movement reads and writes bits,
// never numbers: NaNs keep their payload, and subnormals are not flushed. Units smaller than a word are combined into
// complete output words.

export type UnitBytes = 1 | 2 | 4 | 8 | 16;

/** Sizes in bytes of a unit, the memory that one access reads or writes, largest first. */
export const unitSizes: readonly UnitBytes[] = [16, 8, 4, 2, 1];

/** Returns the WGSL type of a unit in registers. */
export const unitType = (bytes: UnitBytes): "u32" | "vec2<u32>" | "vec4<u32>" =>
  bytes === 16 ? "vec4<u32>" : bytes === 8 ? "vec2<u32>" : "u32";

/** Returns the WGSL type of a binding of units. */
const unitArray = (bytes: UnitBytes): string => `array<${unitType(bytes)}>`;

const unitDtype = (bytes: 1 | 2 | 4): DType => (bytes === 1 ? "u8" : bytes === 2 ? "f16" : "u32");

/**
 * Returns WGSL of `fn bits_<name>(i: u32) -> <unit>`, which returns unit i of the binding `name`. The binding must be
 * declared with `unitArray(bytes)`.
 */
export const unitFunction = (name: string, bytes: UnitBytes): string =>
  bytes < 4
    ? bitsFunction(name, unitDtype(bytes as 1 | 2))
    : `fn bits_${name}(i: u32) -> ${unitType(bytes)} { return ${name}[i]; }`;

/** Returns a binding of an array of units. */
export const unitBinding = (
  name: string,
  bytes: UnitBytes,
  source: BindingSource,
  access: Binding["access"],
): Binding => ({
  name,
  type: unitArray(bytes),
  source,
  access,
});

/** Returns a 32-bit word that repeats the bits of an element of `elementBytes` bytes. */
export const repeatBits = (bits: number, elementBytes: number): number =>
  (elementBytes === 4 ? bits : elementBytes === 2 ? (bits & 0xffff) * 0x10001 : (bits & 0xff) * 0x1010101) >>> 0;

/** Returns WGSL of a unit that repeats `word`. */
export const unitOfWord = (word: string, bytes: UnitBytes): string =>
  bytes <= 4 ? word : `${unitType(bytes)}(${word})`;

/** Number of invocations per workgroup in every movement pass. */
export const movingLanes = 256;

interface UnitPass {
  readonly label: string;
  /** Bindings of the pass, except the output. */
  readonly bindings: readonly Binding[];
  readonly bytes: UnitBytes;
  /** Number of units of the output. */
  readonly units: number;
  /** WGSL of `fn element(at: u32) -> <unit>`, which returns unit `at` of the output. */
  readonly code: string;
  readonly sizes?: { readonly [name: string]: number };
}

/**
 * WGSL that combines units into one write of an invocation, by unit size in bytes. A write has 16 bytes, or four
 * elements if elements are narrower than a word.
 */
const writeForms: {
  readonly [B in UnitBytes]: {
    readonly type: string;
    readonly units: number;
    readonly value: (unit: (i: number) => string) => string;
  };
} = {
  16: { type: "vec4<u32>", units: 1, value: (unit) => unit(0) },
  8: { type: "vec4<u32>", units: 2, value: (unit) => `vec4<u32>(${unit(0)}, ${unit(1)})` },
  4: { type: "vec4<u32>", units: 4, value: (unit) => `vec4<u32>(${unit(0)}, ${unit(1)}, ${unit(2)}, ${unit(3)})` },
  2: {
    type: "vec2<u32>",
    units: 4,
    value: (unit) => `vec2<u32>(${unit(0)} | (${unit(1)} << 16u), ${unit(2)} | (${unit(3)} << 16u))`,
  },
  1: {
    type: "u32",
    units: 4,
    value: (unit) => `${unit(0)} | (${unit(1)} << 8u) | (${unit(2)} << 16u) | (${unit(3)} << 24u)`,
  },
};

/**
 * Returns a pass that computes and writes every unit of output 0. Cost: each unit is written once. Units after the last
 * are written to the padding of the output.
 */
export const unitPass = ({ label, bindings, bytes, units, code, sizes }: UnitPass): Pass => {
  const { type, units: each, value } = writeForms[bytes];
  const writes = Math.ceil(units / each);
  return {
    label,
    bindings: [...bindings, { name: "y", type: `array<${type}>`, source: { output: 0 }, access: "write" }],
    workgroupSize: movingLanes,
    groups: Math.ceil(writes / movingLanes),
    sizes: { writes, ...sizes },
    code: wgsl`
      ${code}
      fn main(group: u32, lane: u32) {
        let at = group * ${movingLanes}u + lane;
        if (at >= sizes.writes) { return; }
        y[at] = ${value((i) => (each === 1 ? "element(at)" : `element(${each}u * at + ${i}u)`))};
      }
    `,
  };
};

/**
 * Returns WGSL that decomposes a flat index, last dimension first: `let <name><d> = …` for each of `sizes`. The sizes
 * are part of the shader text, so that divisions compile to shifts and multiplications.
 */
export const coordinates = (at: string, sizes: readonly number[], name = "c"): string => {
  const lines: string[] = [];
  let rest = at;
  for (let dim = sizes.length - 1; dim > 0; dim--) {
    lines.push(
      `let rest${dim} = ${rest} / ${sizes[dim]}u;`,
      `let ${name}${dim} = ${rest} - rest${dim} * ${sizes[dim]}u;`,
    );
    rest = `rest${dim}`;
  }
  if (sizes.length > 0) lines.push(`let ${name}0 = ${rest};`);
  return lines.join("\n");
};

/** Returns WGSL of `offset + Σ name · stride` over the dimensions. */
export const affine = (
  strides: readonly number[],
  offset: number,
  names: readonly string[] = strides.map((_, dim) => `c${dim}`),
): string => {
  const terms = strides.flatMap((stride, dim) =>
    stride === 0 ? [] : [stride === 1 ? names[dim]! : `${names[dim]} * ${stride}u`],
  );
  if (offset !== 0 || terms.length === 0) terms.unshift(`${offset}u`);
  return terms.join(" + ");
};
