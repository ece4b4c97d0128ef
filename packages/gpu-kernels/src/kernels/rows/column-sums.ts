import type { BindingSource, DeviceFacts, Pass } from "../../kernel.ts";
import { vectorFunctions } from "./row-program.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Plan of column sums: sums of several terms over all rows, separately for each column. The sums are computed in two
 * steps with a fixed order: within blocks of rows, then over the blocks.
 */
export interface ColumnSums {
  readonly width: 1 | 2 | 4;
  /** Number of vectors (of `width` floats) per row. */
  readonly columns: number;
  readonly blocks: number;
  /** Index of the scratch block that holds the block sums, `values[block][term][column]`. */
  readonly partials: number;
  readonly outputs: readonly number[];
}

const valuesType = (width: 1 | 2 | 4): string => (width === 1 ? "array<f32>" : `array<vec${width}<f32>>`);

export const partialBytes = ({ width, columns, blocks, outputs }: ColumnSums): number =>
  4 * width * columns * outputs.length * Math.max(1, blocks);

/** Returns the binding of the scratch block that holds the block sums. */
export const partialBinding = (
  { width, partials }: ColumnSums,
  access: "read" | "write",
): Pass["bindings"][number] => ({
  name: "block_sums",
  type: valuesType(width),
  source: { scratch: partials },
  access,
});

const [columnLanes, rowLanes] = [16, 16];

/** Adds the sums of all blocks. If there are no blocks, because there are no rows, the sums are zero. */
export const sumBlocks = (label: string, sums: ColumnSums): Pass => {
  const { width, columns, blocks, outputs } = sums;
  const all = columns * outputs.length;
  const code = wgsl`
    ${vectorFunctions(width)}
    var<workgroup> shared_sums: array<values, ${columnLanes * rowLanes}>;
    fn main(group: u32, lane: u32) {
      let column = group * ${columnLanes}u + lane % ${columnLanes}u;
      let first = lane / ${columnLanes}u;
      var sum = values();
      if (column < ${all}u) { for (var block = first; block < sizes.blocks; block += ${rowLanes}u) { sum += block_sums[block * ${all}u + column]; } }
      shared_sums[lane] = sum;
      for (var half = ${rowLanes / 2}u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (first < half) { shared_sums[lane] += shared_sums[lane + half * ${columnLanes}u]; }
      }
      if (first > 0u || column >= ${all}u) { return; }
      ${outputs.map((_, i) => `if (column / ${columns}u == ${i}u) { sum${i}[column - ${i * columns}u] = shared_sums[lane]; }`)}
    }
  `;
  return {
    label: `${label} column sums of blocks`,
    bindings: [
      partialBinding(sums, "read"),
      ...outputs.map((output, i) => ({
        name: `sum${i}`,
        type: valuesType(width),
        source: { output },
        access: "write" as const,
      })),
    ],
    workgroupSize: columnLanes * rowLanes,
    groups: Math.ceil(all / columnLanes),
    code,
    sizes: { blocks },
  };
};

/**
 * Terms that a pass over rows and columns sums, as WGSL expressions, and the bindings that the terms read. A term may
 * use `row`, `at` (index of the vector) and `column`.
 */
export interface ColumnTerms {
  readonly bindings: readonly {
    readonly name: string;
    readonly per: "element" | "row";
    readonly source: BindingSource;
  }[];
  readonly prologue: string;
  readonly terms: readonly string[];
}

const [tileColumns, tileRows] = [32, 8];

/** Returns the number of blocks of rows that keeps a device busy and sums short. */
export const blocksForTiles = (rows: number, columns: number, facts: DeviceFacts): number =>
  Math.max(
    1,
    Math.min(
      Math.ceil(rows / tileRows),
      Math.max(Math.ceil((facts.software ? 16 : 512) / Math.ceil(columns / tileColumns)), Math.ceil(rows / 1024)),
    ),
  );

/**
 * Sums the terms over each block of rows, for rows of any length. A workgroup processes a tile of columns of one block.
 */
export const tileSums = (
  label: string,
  { bindings, prologue, terms }: ColumnTerms,
  sums: ColumnSums,
  rows: number,
): Pass => {
  const { width, columns, blocks } = sums;
  const tiles = Math.ceil(columns / tileColumns);
  const each = Math.ceil(rows / blocks);
  const code = wgsl`
    ${vectorFunctions(width)}
    ${terms.map((_, i) => `var<workgroup> shared${i}: array<values, ${tileColumns * tileRows}>;`)}
    fn main(group: u32, lane: u32) {
      let block = group / ${tiles}u;
      let column = (group % ${tiles}u) * ${tileColumns}u + lane % ${tileColumns}u;
      let first = lane / ${tileColumns}u;
      let end = min((block + 1u) * ${each}u, sizes.rows);
      ${terms.map((_, i) => `var own${i} = values();`)}
      if (column < ${columns}u) {
        for (var row = block * ${each}u + first; row < end; row += ${tileRows}u) {
          let at = row * ${columns}u + column;
          ${prologue}
          ${terms.map((term, i) => `own${i} += ${term};`)}
        }
      }
      ${terms.map((_, i) => `shared${i}[lane] = own${i};`)}
      for (var half = ${tileRows / 2}u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (first < half) {
          ${terms.map((_, i) => `shared${i}[lane] += shared${i}[lane + half * ${tileColumns}u];`)}
        }
      }
      if (first > 0u || column >= ${columns}u) { return; }
      ${terms.map((_, i) => `block_sums[(block * ${terms.length}u + ${i}u) * ${columns}u + column] = shared${i}[lane];`)}
    }
  `;
  return {
    label: `${label} column sums, tiles`,
    bindings: [
      ...bindings.map(({ name, per, source }) => ({
        name,
        type: per === "row" ? "array<f32>" : valuesType(width),
        source,
        access: "read" as const,
      })),
      partialBinding(sums, "write"),
    ],
    workgroupSize: tileColumns * tileRows,
    groups: tiles * blocks,
    code,
    sizes: { rows },
  };
};
