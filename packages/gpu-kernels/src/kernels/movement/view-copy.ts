import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import {
  affine,
  coordinates,
  repeatBits,
  type UnitBytes,
  unitBinding,
  unitFunction,
  unitOfWord,
  unitPass,
  unitSizes,
  unitType,
} from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

/** One dimension of a view: its size, and its stride in elements of the input. */
export interface ViewDim {
  readonly size: number;
  readonly stride: number;
}

/** View of a dense input, which maps each index of a dense output to an element of the input. */
export interface View {
  readonly dims: readonly ViewDim[];
  readonly offset: number;
}

/** Drops dimensions of size 1, and merges adjacent dimensions that are contiguous. Returns at least one dimension. */
export const joinDims = (dims: readonly ViewDim[]): ViewDim[] => {
  const joined: ViewDim[] = [];
  for (const dim of dims) {
    if (dim.size === 1) continue;
    const outer = joined.at(-1);
    if (outer !== undefined && outer.stride === dim.stride * dim.size)
      joined[joined.length - 1] = { ...dim, size: outer.size * dim.size };
    else joined.push(dim);
  }
  return joined.length === 0 ? [{ size: 1, stride: 1 }] : joined;
};

/** A view whose offsets, sizes and strides count units of `bytes` bytes. */
interface UnitView extends View {
  readonly bytes: UnitBytes;
  /**
   * Size in bytes of an input element that is repeated to fill a unit. If present, strides and the offset count input
   * elements. Absent: units are not repeated.
   */
  readonly repeated?: UnitBytes;
}

/** Converts a view to the widest possible units. */
export const widen = (view: View, elementBytes: UnitBytes): UnitView => {
  const dims = joinDims(view.dims);
  const outer = dims.slice(0, -1);
  const inner = dims.at(-1)!;
  for (const bytes of unitSizes) {
    if (bytes <= elementBytes) break;
    const step = bytes / elementBytes;
    // A single dimension may end within a unit, because the memory after the end of the tensor is padding.
    const fills = inner.size % step === 0 || outer.length === 0;
    const shorter = { size: Math.ceil(inner.size / step), stride: inner.stride };
    if (!fills) continue;
    if (inner.stride === 0 && bytes >= 4)
      return { dims: [...outer, shorter], offset: view.offset, bytes, repeated: elementBytes };
    if (inner.stride !== 1 || view.offset % step !== 0 || outer.some(({ stride }) => stride % step !== 0)) continue;
    return {
      dims: [...outer.map(({ size, stride }) => ({ size, stride: stride / step })), shorter],
      offset: view.offset / step,
      bytes,
    };
  }
  return { dims, offset: view.offset, bytes: elementBytes };
};

/**
 * Writes `y[i] = x[view(i)]`, in units as wide as the innermost contiguous run allows. With one element per unit, this
 * is the simplest form and the reference for all other movement passes. Cost: each element is written once and read
 * once; one division by a constant per dimension and unit.
 */
export const viewCopyPass = (view: View, dtype: DType, label: string): Pass => {
  const { dims, offset, bytes, repeated } = widen(view, bytesPerElement[dtype] as UnitBytes);
  const read = repeated ?? bytes;
  const found = `bits_x(${affine(
    dims.map(({ stride }) => stride),
    offset,
  )})`;
  const value = repeated === undefined ? found : unitOfWord(`(${found} * ${repeatBits(1, repeated)}u)`, bytes);
  const sizes = dims.map(({ size }) => size);
  const wide = repeated === undefined ? "" : ", repeated";
  return unitPass({
    label: `${label} ${bytes} bytes${wide}`,
    bindings: [unitBinding("x", read, { input: 0 }, "read")],
    bytes,
    units: sizes.reduce((product, size) => product * size, 1),
    code: wgsl`
      ${unitFunction("x", read)}
      fn element(at: u32) -> ${unitType(bytes)} {
        ${coordinates("at", sizes)}  return ${value};
      }
    `,
  });
};

/** Copies all elements of a dense tensor. */
export const denseCopyPass = (count: number, dtype: DType, label: string): Pass =>
  viewCopyPass({ dims: [{ size: count, stride: 1 }], offset: 0 }, dtype, label);
