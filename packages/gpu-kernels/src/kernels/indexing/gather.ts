import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import {
  type UnitBytes,
  unitBinding,
  unitFunction,
  unitOfWord,
  unitPass,
  unitSizes,
  unitType,
} from "../movement/unit.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Sizes of a gather or scatter-add along one dimension: `outer` blocks, each with `size` rows of `inner` elements.
 * `count` is the number of indices.
 */
export interface IndexedSizes {
  readonly outer: number;
  readonly size: number;
  readonly inner: number;
  readonly count: number;
}

/**
 * Computes `y[block, i, :] = x[block, indices[i], :]`, or the word `outside` (its low bytes for smaller elements) if
 * the index is out of range. Uses the widest unit that divides a row. Cost: each element of the result is read once and
 * written once; one index is read per unit, from cache.
 */
export const gatherPass = ({ outer, size, inner, count }: IndexedSizes, dtype: DType, outside: number): Pass => {
  const elementBytes = bytesPerElement[dtype];
  const rowBytes = inner * elementBytes;
  const bytes = unitSizes.find((unit) => rowBytes % unit === 0 && unit >= elementBytes) as UnitBytes;
  const width = rowBytes / bytes;
  const pattern = unitOfWord(`${bytes < 4 ? (outside & (2 ** (8 * bytes) - 1)) >>> 0 : outside}u`, bytes);
  const pick = outer === 1 ? "row" : `row % ${count}u`;
  const first = outer === 1 ? "" : `(row / ${count}u) * (sizes.rows * ${width}u) + `;
  return unitPass({
    label: `gather rows of ${width}x${bytes} bytes`,
    bindings: [
      unitBinding("x", bytes, { input: 0 }, "read"),
      { name: "indices", type: "array<u32>", source: { input: 1 }, access: "read" },
    ],
    bytes,
    units: outer * count * width,
    sizes: { rows: size },
    // Indices are compared as unsigned integers, so negative indices are out of range.
    code: wgsl`
      ${unitFunction("x", bytes)}
      fn element(at: u32) -> ${unitType(bytes)} {
        let row = at / ${width}u;
        let picked = indices[${pick}];
        if (picked >= sizes.rows) { return ${pattern}; }
        return bits_x(${first}picked * ${width}u + at % ${width}u);
      }
    `,
  });
};
