import {
  type AttentionTile,
  columnsAtOnce,
  farVectors,
  resultVectors,
  strideOf,
  tileColumns,
  tileRows,
  weightStride,
} from "./tile.ts";
import { wgsl } from "../../wgsl.ts";

// WGSL that the three tiled kernels share. The WGSL may use `lane` and the invocation's coordinates in the tile, `r`
// and `c`.

const times = <Text>(count: number, text: (i: number) => Text): Text[] =>
  Array.from({ length: count }, (_, i) => text(i));

/**
 * Returns WGSL that declares the workgroup memory of a tile: the array `far` of the column operand, the weights, and
 * the arrays of the row operands, whose names are listed in `near`.
 */
export const tileMemory = (tile: AttentionTile, near: readonly string[]): string => {
  const nearRows = near.map((name) => `var<workgroup> ${name}: array<vec4<f32>, ${tileRows(tile) * strideOf(tile)}>;`);
  return wgsl`
    ${nearRows}
    var<workgroup> far: array<vec4<f32>, ${farVectors(tile)}>;
    var<workgroup> weights: array<vec4<f32>, ${tileRows(tile) * weightStride(tile)}>;
  `;
};

/** Returns WGSL that declares `r` and `c`, the invocation's coordinates in the tile. */
export const declareCoordinates = ({ columnLanes }: AttentionTile): string =>
  wgsl`
    let r = lane / ${columnLanes}u;
    let c = lane % ${columnLanes}u;
  `;

const copyLoop = (tile: AttentionTile, count: number, body: string): string => wgsl`
  for (var i = lane; i < ${count}u; i += ${tile.rowLanes * tile.columnLanes}u) {
    ${body}
  }
`;

/**
 * Returns WGSL that loads a block of a row operand into the workgroup array `near`, from row `first` and vector `base`
 * on. Rows from `end` on are zeros. All arguments are WGSL expressions or names. `line` is the index in memory of the
 * row that `first` and `end` count from.
 */
export const loadNear = (
  tile: AttentionTile,
  near: string,
  operand: string,
  line: string,
  first: string,
  end: string,
  base: string,
): string =>
  copyLoop(
    tile,
    tileRows(tile) * tile.chunk,
    wgsl`
      let row = i / ${tile.chunk}u;
      let v = i % ${tile.chunk}u;
      var x = vec4<f32>();
      if (${first} + row < ${end} && ${base} + v < ${tile.vectors}u) { x = vector_${operand}(${line} + ${first} + row, ${base} + v); }
      ${near}[row * ${strideOf(tile)}u + v] = x;
    `,
  );

/**
 * Returns WGSL that loads a block of the column operand into `far`, as `loadNear` does for a row operand. Columns are
 * stored in the order in which invocations own them.
 */
export const loadFar = (
  tile: AttentionTile,
  operand: string,
  line: string,
  first: string,
  end: string,
  base: string,
): string =>
  copyLoop(
    tile,
    tileColumns(tile) * tile.chunk,
    wgsl`
      let slot = i / ${tile.chunk}u;
      let v = i % ${tile.chunk}u;
      let column = ${first} + slot % ${tile.columnLanes}u * 4u + slot / ${tile.columnLanes}u;
      var x = vec4<f32>();
      if (column < ${end} && ${base} + v < ${tile.vectors}u) { x = vector_${operand}(${line} + column, ${base} + v); }
      far[slot * ${strideOf(tile)}u + v] = x;
    `,
  );

/**
 * Returns WGSL that adds the products of `near` rows and `far` columns to `target0` … `target3`, over the vectors of
 * the current chunk.
 */
const multiplyChunk = (tile: AttentionTile, target: string, near: string): string => {
  const stride = strideOf(tile);
  const column = (n: number): string => wgsl`
    {
      let b = far[(${n * tile.columnLanes}u + c) * ${stride}u + v];
      ${times(4, (i) => `${target}${i}[${n}] = fma(a${i}.w, b.w, fma(a${i}.z, b.z, fma(a${i}.y, b.y, fma(a${i}.x, b.x, ${target}${i}[${n}]))));`)}
    }
  `;
  return wgsl`
    for (var v = 0u; v < ${tile.chunk}u; v++) {
      ${times(4, (i) => `let a${i} = ${near}[(r + ${i * tile.rowLanes}u) * ${stride}u + v];`)}
      ${times(4, column)}
    }
  `;
};

/**
 * A range of rows in memory. `operand` names the `vector_` function that reads the operand. `line`, `first` and `end`
 * are WGSL expressions. `first` and `end` bound the range, and are counted from row `line` in memory.
 */
export interface Rows {
  readonly operand: string;
  readonly line: string;
  readonly first: string;
  readonly end: string;
}

/**
 * Returns WGSL that declares `target0` … and sets them to rows · columnsᵀ of the tile. The code uses `far`, and also
 * `near` unless resident, as temporary memory.
 */
export const productOfRows = (tile: AttentionTile, target: string, near: string, rows: Rows, columns: Rows): string => {
  const declared = times(4, (i) => `var ${target}${i} = vec4<f32>();`);
  if (tile.resident)
    return wgsl`
      ${declared}
      workgroupBarrier();
      ${loadFar(tile, columns.operand, columns.line, columns.first, columns.end, "0u")}
      workgroupBarrier();
      ${multiplyChunk(tile, target, near)}
    `;
  return wgsl`
    ${declared}
    for (var base = 0u; base < ${tile.vectors}u; base += ${tile.chunk}u) {
      workgroupBarrier();
      ${loadNear(tile, near, rows.operand, rows.line, rows.first, rows.end, "base")}
      ${loadFar(tile, columns.operand, columns.line, columns.first, columns.end, "base")}
      workgroupBarrier();
      ${multiplyChunk(tile, target, near)}
    }
  `;
};

/**
 * Returns WGSL that multiplies weight `t` of `w<i>` by the row of `far` that begins at `at`, and adds the product to
 * `target<i>_<o>`.
 */
const addColumn = (tile: AttentionTile, target: string, t: string, at: string): string[] =>
  times(
    resultVectors(tile),
    (o) => wgsl`
      let b${o} = far[${at} + ${o * tile.columnLanes}u];
      ${times(4, (i) => `${target}${i}_${o} = fma(vec4<f32>(w${i}[${t}]), b${o}, ${target}${i}_${o});`)}
    `,
  );

/**
 * Returns WGSL that adds four columns, multiplied by their weights, to the results. The first column is 4·`k`. If the
 * loop is unrolled, the four columns share one read of the weights; if not, the text is a quarter as long.
 */
const addFour = (tile: AttentionTile, target: string, k: string, at: (t: string) => string): string => {
  const weights = (i: number): string => `weights[(r + ${i * tile.rowLanes}u) * ${weightStride(tile)}u + ${k}]`;
  const read = times(4, (i) => `let w${i} = ${weights(i)};`);
  if (!tile.rolled)
    return wgsl`
      ${read}
      ${times(
        4,
        (t) => wgsl`
          {
            ${addColumn(tile, target, `${t}`, at(`${t}u`))}
          }
        `,
      )}
    `;
  return wgsl`
    ${read}
    for (var t = 0u; t < 4u; t++) {
      ${addColumn(tile, target, "t", at("t"))}
    }
  `;
};

/**
 * Returns WGSL that adds weights · columns to `target<i>_<o>`. `far` holds complete rows of the columns, as written by
 * `loadFar`.
 */
export const addFar = (tile: AttentionTile, target: string): string => wgsl`
  for (var k = 0u; k < ${tile.columnLanes}u; k++) {
    ${addFour(tile, target, "k", (t) => `(${t} * ${tile.columnLanes}u + k) * ${strideOf(tile)}u + c`)}
  }
`;

/**
 * Returns WGSL that loads the columns of the tile and adds weights · columns to `target<i>_<o>`. The caller has written
 * the weights. Includes barriers before and after.
 */
export const addWeighted = (tile: AttentionTile, target: string, columns: Rows): string => {
  if (tile.resident)
    return wgsl`
      ${loadFar(tile, columns.operand, columns.line, columns.first, columns.end, "0u")}
      workgroupBarrier();
      ${addFar(tile, target)}
    `;
  const atOnce = columnsAtOnce(tile);
  const { vectors } = tile;
  return wgsl`
    for (var base = 0u; base < ${tileColumns(tile)}u; base += ${atOnce}u) {
      workgroupBarrier();
      ${copyLoop(
        tile,
        atOnce * vectors,
        wgsl`
          let column = ${columns.first} + base + i / ${vectors}u;
          var x = vec4<f32>();
          if (column < ${columns.end} && base + i / ${vectors}u < ${tileColumns(tile)}u) { x = vector_${columns.operand}(${columns.line} + column, i % ${vectors}u); }
          far[i] = x;
        `,
      )}
      workgroupBarrier();
      for (var k = 0u; k < ${atOnce / 4}u && base / 4u + k < ${tile.columnLanes}u; k++) {
        ${addFour(tile, target, "base / 4u + k", (t) => `(4u * k + ${t}) * ${vectors}u + c`)}
      }
    }
  `;
};

/** Returns the variable names of the result vectors in row `i`. */
export const resultNames = (tile: AttentionTile, target: string, i: number): string[] =>
  times(resultVectors(tile), (o) => `${target}${i}_${o}`);

/** Returns WGSL that declares `target<i>_<o>`, the result vectors that the invocation owns, initialized to zeros. */
export const resultVariables = (tile: AttentionTile, target: string): string[] =>
  times(4, (i) => resultNames(tile, target, i).map((name) => `var ${name} = vec4<f32>();`)).flat();

/** Returns WGSL that writes the result vectors of the invocation, each row multiplied by `factor(i)`. */
export const storeResult = (
  tile: AttentionTile,
  target: string,
  name: string,
  line: string,
  first: string,
  end: string,
  factor: (i: number) => string,
): string[] =>
  times(
    4,
    (i) => wgsl`
      if (${first} + r + ${i * tile.rowLanes}u < ${end}) {
        ${times(resultVectors(tile), (o) => {
          const put = `put_${name}(${line} + ${first} + r + ${i * tile.rowLanes}u, c + ${o * tile.columnLanes}u, ${target}${i}_${o} * ${factor(i)});`;
          return (o + 1) * tile.columnLanes <= tile.vectors
            ? `${put}`
            : `if (c + ${o * tile.columnLanes}u < ${tile.vectors}u) { ${put} }`;
        })}
      }
    `,
  );

/** Returns `text(i)` for each of the four rows i of the invocation. */
export const eachRow = (text: (i: number) => string): string[] => times(4, text);
