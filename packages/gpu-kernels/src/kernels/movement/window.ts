import { bytesPerElement, type DType, elementCount, type Shape } from "@skein/tensor-core";
import { rowMajorStrides } from "@skein/tensor-core/backend";
import type { Binding, Pass } from "../../kernel.ts";
import {
  coordinates,
  movingLanes,
  type UnitBytes,
  unitBinding,
  unitFunction,
  unitPass,
  unitSizes,
  unitType,
} from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

/** A window of size `sizes` in a tensor of shape `shape`. */
interface Window {
  readonly shape: Shape;
  readonly sizes: Shape;
  readonly dtype: DType;
}

/**
 * A window whose sizes count units of `bytes` bytes. In a dimension that the window fills completely, the window starts
 * at 0. The last dimensions that the window fills completely form rows, which are moved in wide units.
 */
interface UnitWindow {
  readonly bytes: UnitBytes;
  /** Number of units of a row. Each row starts at a multiple of this number. */
  readonly row: number;
  /** Dimensions before the row: size in the window, size in the tensor (`whole`), and stride in units. */
  readonly dims: readonly { readonly size: number; readonly whole: number; readonly stride: number }[];
}

const unitWindow = ({ shape, sizes, dtype }: Window): UnitWindow => {
  const elementBytes = bytesPerElement[dtype];
  const filled = shape.length - 1 - shape.findLastIndex((size, dim) => size !== sizes[dim]!);
  const rank = shape.length - filled;
  const rowBytes = elementCount(shape.slice(rank)) * elementBytes;
  const bytes = unitSizes.find((unit) => rowBytes % unit === 0 && unit >= elementBytes) as UnitBytes;
  const strides = rowMajorStrides(shape);
  const dims = shape.slice(0, rank).map((whole, dim) => ({
    size: sizes[dim]!,
    whole,
    stride: (strides[dim]! * elementBytes) / bytes,
  }));
  return { bytes, row: rowBytes / bytes, dims };
};

const startsBinding = (input: number): Binding => ({
  name: "starts",
  type: "array<i32>",
  source: { input },
  access: "read",
});

/** Returns WGSL that declares `s<d>`, the start of the window, for each dimension d that the window does not fill. */
const windowStarts = ({ dims }: UnitWindow): string[] =>
  dims.flatMap(({ size, whole }, dim) =>
    size === whole ? [] : [`let s${dim} = u32(clamp(starts[${dim}], 0, ${whole - size}));`],
  );

/** Returns WGSL of the tensor's unit index for window coordinates `c<d>`. The last coordinate is within the row. */
const unitIndex = ({ dims }: UnitWindow): string =>
  [
    ...dims.map(({ size, whole, stride }, dim) => `(${size === whole ? "" : `s${dim} + `}c${dim}) * ${stride}u`),
    `c${dims.length}`,
  ].join(" + ");

const unitsOf = ({ dims, row }: UnitWindow): number[] => [...dims.map(({ size }) => size), row];

/**
 * Copies the window of input 0 that starts at `starts`, input 1. Cost: each element of the result is read and written
 * once.
 */
export const readWindowPass = (window: Window): Pass => {
  const units = unitWindow(window);
  const { bytes } = units;
  return unitPass({
    label: `dynamic-slice ${bytes} bytes`,
    bindings: [unitBinding("x", bytes, { input: 0 }, "read"), startsBinding(1)],
    bytes,
    units: elementCount(unitsOf(units)),
    code: wgsl`
      ${unitFunction("x", bytes)}
      fn element(at: u32) -> ${unitType(bytes)} {
        ${coordinates("at", unitsOf(units))}
        ${windowStarts(units)}
        return bits_x(${unitIndex(units)});
      }
    `,
  });
};

/**
 * Replaces the window of output 0 that starts at `starts`, input 2, by input 1, in units of a word or more. Cost: each
 * element of the update is read and written once.
 */
const writeWordsPass = (units: UnitWindow): Pass => {
  const { bytes } = units;
  const count = elementCount(unitsOf(units));
  return {
    label: `dynamic-update-slice ${bytes} bytes`,
    bindings: [
      unitBinding("u", bytes, { input: 1 }, "read"),
      startsBinding(2),
      unitBinding("y", bytes, { output: 0 }, "write"),
    ],
    workgroupSize: movingLanes,
    groups: Math.ceil(count / movingLanes),
    sizes: { count },
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${movingLanes}u + lane;
        if (at >= sizes.count) { return; }
        ${coordinates("at", unitsOf(units))}
        ${windowStarts(units)}
        y[${unitIndex(units)}] = u[at];
      }
    `,
  };
};

/**
 * Variant of `writeWordsPass` for units smaller than a word. Only one invocation may write a word, so there is one
 * invocation per word of the result, which replaces the word's elements in the window. Cost: every word of the result
 * and every element of the update is read once.
 */
const writePartsPass = ({ bytes, dims, row }: UnitWindow): Pass => {
  const perWord = 4 / bytes;
  const whole = [...dims.map((dim) => dim.whole), row];
  const total = elementCount(whole);
  const inside = ["true", ...dims.map(({ size }, dim) => `c${dim} - s${dim} < ${size}u`)];
  const from = dims.reduce((sum, { size }, dim) => `(${sum} * ${size}u + c${dim} - s${dim})`, "0u");
  const words = Math.ceil(total / perWord);
  return {
    label: `dynamic-update-slice ${bytes} bytes`,
    bindings: [
      unitBinding("u", bytes, { input: 1 }, "read"),
      startsBinding(2),
      unitBinding("y", 4, { output: 0 }, "write"),
    ],
    workgroupSize: movingLanes,
    groups: Math.ceil(words / movingLanes),
    sizes: { words, units: total },
    code: wgsl`
      ${unitFunction("u", bytes)}
      fn main(group: u32, lane: u32) {
        let word = group * ${movingLanes}u + lane;
        if (word >= sizes.words) { return; }
        ${dims.map(({ size, whole: all }, dim) => `let s${dim} = u32(clamp(starts[${dim}], 0, ${all - size}));`)}
        var bits = y[word];
        var changed = false;
        for (var part = 0u; part < ${perWord}u; part++) {
          let at = word * ${perWord}u + part;
          if (at >= sizes.units) { break; }
          ${coordinates("at", whole)}
          // Compared as unsigned, what lies before the window is far behind it.
          if (${inside.join(" && ")}) {
            let shift = part * ${8 * bytes}u;
            bits = (bits & ~(${2 ** (8 * bytes) - 1}u << shift)) | (bits_u(${from} * ${row}u + c${dims.length}) << shift);
            changed = true;
          }
        }
        if (changed) { y[word] = bits; }
      }
    `,
  };
};

/** Writes input 1 into output 0 at `starts`, input 2. Output 0 already holds the base. */
export const writeWindowPass = (window: Window): Pass => {
  const units = unitWindow(window);
  return units.bytes < 4 ? writePartsPass(units) : writeWordsPass(units);
};
