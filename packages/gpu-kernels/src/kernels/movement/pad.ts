import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import {
  coordinates,
  type UnitBytes,
  unitBinding,
  unitFunction,
  unitOfWord,
  unitPass,
  unitSizes,
  unitType,
} from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Padding of a dimension: `low` entries, then `size` entries of the input with `gap` entries of padding between
 * adjacent entries, then `high` entries.
 */
export interface PadDim {
  readonly size: number;
  readonly low: number;
  readonly high: number;
  readonly gap: number;
}

const paddedSize = ({ size, low, high, gap }: PadDim): number =>
  low + high + (size === 0 ? 0 : size + (size - 1) * gap);

const isWhole = ({ low, high, gap }: PadDim): boolean => low === 0 && high === 0 && gap === 0;

/** Merges each unpadded dimension with the previous dimension. Returns at least one dimension. */
const joinPadDims = (dims: readonly PadDim[]): PadDim[] => {
  const joined: PadDim[] = [];
  for (const dim of dims) {
    if (dim.size === 1 && isWhole(dim)) continue;
    const outer = joined.at(-1);
    if (outer !== undefined && outer.gap === 0 && isWhole(dim))
      joined[joined.length - 1] = {
        size: outer.size * dim.size,
        low: outer.low * dim.size,
        high: outer.high * dim.size,
        gap: 0,
      };
    else joined.push(dim);
  }
  return joined.length === 0 ? [{ size: 1, low: 0, high: 0, gap: 0 }] : joined;
};

const widen = (
  dims: readonly PadDim[],
  elementBytes: UnitBytes,
): { readonly dims: readonly PadDim[]; readonly bytes: UnitBytes } => {
  const inner = dims.at(-1)!;
  for (const bytes of unitSizes) {
    const step = bytes / elementBytes;
    if (step <= 1) break;
    if (inner.gap !== 0 || [inner.size, inner.low, inner.high].some((size) => size % step !== 0)) continue;
    const shorter = { size: inner.size / step, low: inner.low / step, high: inner.high / step, gap: 0 };
    return { dims: [...dims.slice(0, -1), shorter], bytes };
  }
  return { dims, bytes: elementBytes };
};

/**
 * Writes each unit of the padded tensor once, with elements of the input or the padding value.
 *
 * @param pattern Bits of the padding value, repeated to fill a word.
 */
export const padPass = (source: readonly PadDim[], dtype: DType, pattern: number): Pass => {
  const elementBytes = bytesPerElement[dtype] as UnitBytes;
  const { dims, bytes } = widen(joinPadDims(source), elementBytes);
  const sizes = dims.map(paddedSize);
  const value = unitOfWord(`${bytes < 4 ? pattern & (2 ** (8 * bytes) - 1) : pattern}u`, bytes);
  const lines: string[] = [];
  const inside: string[] = [];
  const terms: string[] = [];
  let step = 1;
  for (let dim = dims.length - 1; dim >= 0; dim--) {
    const { size, low, gap } = dims[dim]!;
    if (isWhole(dims[dim]!)) {
      lines.push(`let i${dim} = c${dim};`);
    } else {
      // For indices before the first entry, the difference wraps around and is out of range.
      lines.push(`let d${dim} = c${dim} - ${low}u;`, `let i${dim} = d${dim} / ${gap + 1}u;`);
      inside.push(`i${dim} < ${size}u`);
      if (gap > 0) inside.push(`d${dim} % ${gap + 1}u == 0u`);
    }
    terms.push(step === 1 ? `i${dim}` : `i${dim} * ${step}u`);
    step *= size;
  }
  const empty = dims.some(({ size }) => size === 0);
  const body = empty
    ? `return ${value};`
    : wgsl`
      ${coordinates("at", sizes)}
      ${lines}
      if (${inside.length === 0 ? "true" : inside.join(" && ")}) { return bits_x(${terms.join(" + ")}); }
      return ${value};
    `;
  return unitPass({
    label: `pad ${bytes} bytes`,
    bindings: empty ? [] : [unitBinding("x", bytes, { input: 0 }, "read")],
    bytes,
    units: sizes.reduce((product, size) => product * size, 1),
    code: wgsl`
      ${empty ? "" : unitFunction("x", bytes)}
      fn element(at: u32) -> ${unitType(bytes)} {
        ${body}
      }
    `,
  });
};
