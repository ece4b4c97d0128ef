import { type Lanes, laneType, workgroupSize } from "../reduce/fold.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import type { Selection } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of registers per invocation in a tile. */
export const registers = 4;

/** Division of rows into tiles for a radix selection. */
export interface Layout {
  readonly lanes: Lanes;
  /** Number of registers per row. */
  readonly vectors: number;
  /** Number of tiles per row. A tile has 256 times `registers` registers. */
  readonly tiles: number;
  /**
   * Number of counts per row, rounded up to complete registers, so that one pass sums the counts of 4096 tiles. Counts
   * after the last tile do not affect sums.
   */
  readonly stride: number;
}

export const layoutOf = ({ rows, size }: Selection): Layout => {
  const lanes = size % 4 === 0 || rows === 1 ? 4 : 1;
  const vectors = Math.ceil(size / lanes);
  const tiles = Math.ceil(vectors / (workgroupSize * registers));
  return { lanes, vectors, tiles, stride: 4 * Math.ceil(tiles / 4) };
};

/** Returns the uniform sizes that `keysText` reads. */
export const keySizes = (
  { size }: Selection,
  { vectors }: Layout,
): { readonly size: number; readonly vectors: number } => ({
  size,
  vectors,
});

/**
 * Returns WGSL of two functions. `fn keys_at(row, v) -> <keys>` returns the keys in register v of a row.
 * `fn is_there(v) -> <bools>` returns whether each element of the register belongs to the row.
 */
export const keysText = ({ by, size }: Selection, { lanes }: Layout): string => {
  const ends = lanes === 4 && size % 4 !== 0;
  const inside = lanes === 1 ? "v < sizes.vectors" : "vec4<bool>(v < sizes.vectors)";
  return wgsl`
    ${keyFunction(by, false, lanes)}
    fn keys_at(row: u32, v: u32) -> ${laneType("u32", lanes)} { return key_of(x[row * sizes.vectors + min(v, sizes.vectors - 1u)]); }
    fn is_there(v: u32) -> ${laneType("bool", lanes)} { return ${ends ? `(4u * v + vec4<u32>(0u, 1u, 2u, 3u)) < vec4<u32>(sizes.size)` : inside}; }
  `;
};

export const componentsOf = (lanes: Lanes): readonly string[] => (lanes === 1 ? [""] : [".x", ".y", ".z", ".w"]);
