import type { BindingSource, Pass } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { type Lanes, laneType, workgroupSize } from "../reduce/fold.ts";
import type { SumType } from "../reduce/sum.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { workgroupScan } from "./workgroup-scan.ts";
import { wgsl } from "../../wgsl.ts";

/** Sizes and options of inclusive running sums along the rows of a [rows, size] tensor. */
export interface RowScan {
  readonly type: SumType;
  readonly rows: number;
  readonly size: number;
  /** Whether sums run from the end of each row to its start. */
  readonly reverse: boolean;
}

/**
 * Tile of a row that a workgroup processes: `registers` registers of `lanes` elements for each of `perRow` invocations.
 */
interface Tile {
  readonly lanes: Lanes;
  readonly perRow: number;
  readonly registers: 1 | 4;
  /** Number of tiles per row. */
  readonly tiles: number;
}

const tileOf = ({ type, rows, size }: RowScan): Tile => {
  // Float sums of a row have a fixed order, whatever the number of rows. Integer sums are bitwise identical in any
  // order.
  const free = type === "u32";
  const lanes = size % 4 === 0 || (free && rows === 1) ? 4 : 1;
  const vectors = Math.ceil(size / lanes);
  // Four registers per invocation share one scan over invocations, unless most invocations would be idle.
  const registers = vectors > workgroupSize || (free && vectors >= 16 && rows * vectors > 65_536) ? 4 : 1;
  const perRow = Math.min(workgroupSize, powerOfTwoAbove(Math.ceil(vectors / registers)));
  return { lanes, perRow, registers, tiles: Math.ceil(vectors / (perRow * registers)) };
};

const each = (registers: number, line: (j: number) => string): string[] =>
  Array.from({ length: registers }, (_, j) => line(j));

/**
 * Returns WGSL that declares the invocation's `row`, `tile` and `rank`, and `fn load(row, v)`, which returns register v
 * of a row in scan order, with zeros after the end of the row.
 */
const loadText = ({ type, rows, size, reverse }: RowScan, { lanes, perRow, tiles }: Tile): string => {
  const vector = laneType(type, lanes);
  const masked = lanes === 4 && size % 4 !== 0;
  const at = reverse ? "sizes.vectors - 1u - v" : "v";
  const elements = masked ? `let element = 4u * (${at}) + vec4<u32>(0u, 1u, 2u, 3u);` : "";
  const inside = masked ? `select(${vector}(), x[place(row, v)], element < vec4<u32>(sizes.size))` : "x[place(row, v)]";
  const rowOfTile = tiles === 1 ? "group" : `group / ${tiles}u`;
  const row = perRow === workgroupSize ? rowOfTile : `group * ${workgroupSize / perRow}u + lane / ${perRow}u`;
  return wgsl`
    fn place(row: u32, v: u32) -> u32 { return row * sizes.vectors + ${at}; }
    fn load(row: u32, v: u32) -> ${vector} {
      if (v >= sizes.vectors || row >= ${rows}u) { return ${vector}(); }
      ${elements}
      let found = ${inside};
      return found${reverse && lanes === 4 ? ".wzyx" : ""};
    }
    fn row_of(group: u32, lane: u32) -> u32 { return ${row}; }
    fn tile_of(group: u32) -> u32 { return ${tiles === 1 ? "0u" : `group % ${tiles}u`}; }
  `;
};

const binding = (name: string, type: string, source: BindingSource, access: "read" | "write") =>
  ({ name, type: `array<${type}>`, source, access }) as const;

const groupsOf = ({ rows }: RowScan, { perRow, tiles }: Tile): number =>
  Math.ceil((rows * perRow) / workgroupSize) * tiles;

const sizesOf = ({ size }: RowScan, { lanes }: Tile): { readonly size: number; readonly vectors: number } => ({
  size,
  vectors: Math.ceil(size / lanes),
});

/** Computes the sum of every tile. */
const sumsPass = (scan: RowScan, tile: Tile, from: BindingSource, sums: BindingSource): Pass => {
  const { lanes, registers } = tile;
  const vector = laneType(scan.type, lanes);
  const steps: string[] = [];
  for (let step = workgroupSize / 2; step >= 1; step /= 2)
    steps.push(wgsl`
      workgroupBarrier();
      if (lane < ${step}u) { sum += parts[lane + ${step}u]; parts[lane] = sum; }
    `);
  return {
    label: "cumsum rows, sums of tiles",
    bindings: [binding("x", vector, from, "read"), binding("sums", scan.type, sums, "write")],
    workgroupSize,
    groups: groupsOf(scan, tile),
    code: wgsl`
      ${loadText(scan, tile)}
      var<workgroup> parts: array<${scan.type}, ${workgroupSize}>;
      fn main(group: u32, lane: u32) {
        let row = row_of(group, lane);
        let first = tile_of(group) * ${registers * workgroupSize}u + lane;
        ${each(registers, (j) => `let x${j} = load(row, first + ${j * workgroupSize}u);`)}
        let v = ${registers === 1 ? "x0" : "(x0 + x1) + (x2 + x3)"};
        var sum = ${lanes === 1 ? "v" : "(v.x + v.y) + (v.z + v.w)"};
        parts[lane] = sum;
        ${steps}
        if (lane == 0u) { sums[group] = sum; }
      }
    `,
    sizes: sizesOf(scan, tile),
  };
};

/** Computes running sums within tiles, starting from `before`, the running sums of the tile sums. */
const scanPass = (
  scan: RowScan,
  tile: Tile,
  from: BindingSource,
  to: BindingSource,
  before: BindingSource | undefined,
): Pass => {
  const { lanes, perRow, registers, tiles } = tile;
  const vector = laneType(scan.type, lanes);
  const totals = laneType(scan.type, registers);
  const last = (name: string): string => (lanes === 1 ? name : `${name}.w`);
  const part = (name: string, j: number): string => (registers === 1 ? name : `${name}.${"xyzw"[j]!}`);
  const prefix =
    lanes === 1
      ? ""
      : wgsl`
        fn prefix(v: ${vector}) -> ${vector} {
          let a = v.x + v.y;
          let b = v.z + v.w;
          return ${vector}(v.x, a, a + v.z, a + b);
        }
      `;
  const own = (j: number): string =>
    lanes === 1 ? `load(row, first + ${j * perRow}u)` : `prefix(load(row, first + ${j * perRow}u))`;
  const turned = scan.reverse && lanes === 4 ? ".wzyx" : "";
  const write = (j: number): string => wgsl`
    if (first + ${j * perRow}u < sizes.vectors && row < ${scan.rows}u) {
      y[place(row, first + ${j * perRow}u)] = (s${j} + (carry + ${part("ahead", j)}))${turned};
    }
    ${j < registers - 1 ? `carry += ${part("all", j)};` : ""}
  `;
  const ends = Array.from({ length: registers }, (_, j) => last(`s${j}`)).join(", ");
  return {
    label: `cumsum rows, ${tiles === 1 ? `${perRow} invocations each` : `${tiles} tiles each`}`,
    bindings: [
      binding("x", vector, from, "read"),
      ...(before === undefined ? [] : [binding("before", scan.type, before, "read")]),
      binding("y", vector, to, "write"),
    ],
    workgroupSize,
    groups: groupsOf(scan, tile),
    code: wgsl`
      ${loadText(scan, tile)}
      ${workgroupScan(totals, workgroupSize, perRow)}
      ${prefix}
      fn main(group: u32, lane: u32) {
        let row = row_of(group, lane);
        let tile = tile_of(group);
        let first = tile * ${registers * perRow}u + lane % ${perRow}u;
        ${each(registers, (j) => `let s${j} = ${own(j)};`)}
        let ahead = scan(lane, ${totals}(${ends}));
        ${registers > 1 ? "let all = scan_total(lane);" : ""}
        var carry = ${scan.type}();
        ${before === undefined ? "" : "if (tile > 0u) { carry = before[group - 1u]; }"}
        ${each(registers, write)}
      }
    `,
    sizes: sizesOf(scan, tile),
  };
};

/**
 * Returns the passes that compute the running sums of rows. A row that fits in a tile of 4096 needs one pass. For
 * longer rows: sums of tiles, running sums of these sums (recursively), and running sums within tiles (reduce, then
 * scan: the order of additions depends only on the shape). Reads all data twice, writes it once.
 */
export const rowScanPasses = (scan: RowScan, from: BindingSource, to: BindingSource, blocks: ScratchBlocks): Pass[] => {
  const tile = tileOf(scan);
  if (tile.tiles === 1) return [scanPass(scan, tile, from, to, undefined)];
  const [sums, before] = [blocks.take(scan.rows * tile.tiles), blocks.take(scan.rows * tile.tiles)];
  return [
    sumsPass(scan, tile, from, sums),
    ...rowScanPasses({ ...scan, size: tile.tiles, reverse: false }, sums, before, blocks),
    scanPass(scan, tile, from, to, before),
  ];
};
