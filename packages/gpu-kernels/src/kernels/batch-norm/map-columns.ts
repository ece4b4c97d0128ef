import type { BindingSource, Pass } from "../../kernel.ts";
import { columnTile } from "../reduce/columns.ts";
import { laneType, workgroupSize } from "../reduce/fold.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of rows per invocation. The rows share one read of the data of a column. */
const rowsEach = 8;

export interface ColumnMap {
  readonly label: string;
  readonly rows: number;
  readonly width: number;
  /** Binding of each f32 input array, by the name of its WGSL variable. */
  readonly reads: { readonly [name: string]: BindingSource };
  readonly write: BindingSource;
  /** WGSL statements that are executed once per column, before the loop over rows. May use `column`. */
  readonly perColumn: string;
  /** WGSL expression of an element of the result. May use `at` and the declarations of `perColumn`. */
  readonly value: string;
}

/** Sets `y[row, column] = value` for every element of [rows, width]. Reads and writes all data once. */
export const mapColumnsPass = ({ label, rows, width, reads, write, perColumn, value }: ColumnMap): Pass => {
  const { lanes, across, down, blocks } = columnTile(width);
  const type = `array<${laneType("f32", lanes)}>`;
  const chunk = down * rowsEach;
  return {
    label,
    bindings: [
      ...Object.entries(reads).map(([name, source]) => ({ name, type, source, access: "read" }) as const),
      { name: "y", type, source: write, access: "write" },
    ],
    workgroupSize,
    groups: blocks * Math.ceil(rows / chunk),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let rank = lane / ${across}u;
        let column = ${blocks === 1 ? "" : `group % ${blocks}u * ${across}u + `}lane % ${across}u;
        if (rank >= ${down}u || column >= sizes.registers) { return; }
        ${perColumn}
        let first = group / ${blocks}u * ${chunk}u;
        let stop = min(first + ${chunk}u, sizes.rows);
        for (var row = first + rank; row < stop; row += ${down}u) {
          let at = row * sizes.registers + column;
          y[at] = ${value};
        }
      }
    `,
    sizes: { rows, registers: width / lanes },
  };
};
