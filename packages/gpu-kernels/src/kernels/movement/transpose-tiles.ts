import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { batchCode, type Transposition } from "./transposition.ts";
import { affine } from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 256;

/**
 * Side of a square tile in words, by bytes per element. With one padding word per row, the words of a column are in
 * different banks.
 */
const tileWords: { readonly [elementBytes: number]: number } = { 4: 32, 2: 32, 1: 16 };

/**
 * Returns the sides of a tile in words. If one dimension of the matrix is short, the tile is longer along the other
 * dimension.
 */
const tileSides = (
  rowWords: number,
  columnWords: number,
  elementBytes: number,
): readonly [rows: number, columns: number] => {
  const side = tileWords[elementBytes]!;
  const columns = Math.min(side, powerOfTwoAbove(columnWords));
  const rows = Math.min((side * side) / columns, powerOfTwoAbove(rowWords));
  return [rows, Math.min((side * side) / rows, powerOfTwoAbove(columnWords))];
};

/**
 * Transposes by tiles in workgroup memory, so that both reads and writes access consecutive memory. A tile of 32×32
 * words with rows padded to 33 words is the classic method (Ruetsch and Micikevicius, Optimizing Matrix Transpose in
 * CUDA, 2009). Packed elements are extracted from the words of a column. Cost: each word is read once and written once;
 * one barrier.
 */
export const transposeTilesPass = (transposition: Transposition, dtype: DType): Pass => {
  const { rows, columns, batch, offset } = transposition;
  const elementBytes = bytesPerElement[dtype];
  const perWord = 4 / elementBytes;
  const [rowWords, columnWords] = [rows.size / perWord, Math.ceil(columns.size / perWord)];
  const [tileRowWords, tileColumns] = tileSides(rowWords, columnWords, elementBytes);
  const tileRows = tileRowWords * perWord;
  const tileColumnElements = tileColumns * perWord;
  const [numRowTiles, numColumnTiles] = [Math.ceil(rowWords / tileRowWords), Math.ceil(columnWords / tileColumns)];
  const matrices = batch.reduce((product, { size }) => product * size, 1);
  const pitch = tileColumns + 1;
  const words = (elements: number): number => elements / perWord;

  const names = batch.map((_, dim) => `b${dim}`);
  const from = affine([...batch.map((dim) => words(dim.inputStride)), words(rows.inputStride), 1], words(offset), [
    ...names,
    "row",
    "column",
  ]);
  const to = affine([...batch.map((dim) => words(dim.outputStride)), words(columns.outputStride), 1], 0, [
    ...names,
    "column",
    "row",
  ]);
  const loads = Math.ceil((tileRows * tileColumns) / lanes);
  const stores = Math.ceil((tileColumnElements * tileRowWords) / lanes);
  const bits = 8 * elementBytes;
  const gathered = Array.from({ length: perWord }, (_, i) => {
    const word = `tile[(${perWord}u * tile_row + ${i}u) * ${pitch}u + ${perWord === 1 ? "tile_column" : `tile_column / ${perWord}u`}]`;
    if (perWord === 1) return word;
    return `(((${word} >> ((tile_column % ${perWord}u) * ${bits}u)) & ${2 ** bits - 1}u) << ${bits * i}u)`;
  });
  return {
    label: `transpose tiles of ${tileRows}x${tileColumnElements}`,
    bindings: [
      { name: "x", type: "array<u32>", source: { input: 0 }, access: "read" },
      { name: "y", type: "array<u32>", source: { output: 0 }, access: "write" },
    ],
    workgroupSize: lanes,
    groups: matrices * numRowTiles * numColumnTiles,
    code: wgsl`
      var<workgroup> tile: array<u32, ${tileRows * pitch}>;
      fn main(group: u32, lane: u32) {
        let first_column = (group % ${numColumnTiles}u) * ${tileColumns}u;
        let r0 = group / ${numColumnTiles}u;
        let first_row = (r0 % ${numRowTiles}u) * ${tileRowWords}u;
        let matrix = r0 / ${numRowTiles}u;
        ${batchCode(batch)}
        for (var i = 0u; i < ${loads}u; i++) {
          let at = i * ${lanes}u + lane;
          let tile_row = at / ${tileColumns}u;
          let tile_column = at % ${tileColumns}u;
          let row = first_row * ${perWord}u + tile_row;
          let column = first_column + tile_column;
          if (tile_row < ${tileRows}u && row < ${rows.size}u && column < ${columnWords}u) { tile[tile_row * ${pitch}u + tile_column] = x[${from}]; }
        }
        workgroupBarrier();
        for (var i = 0u; i < ${stores}u; i++) {
          let at = i * ${lanes}u + lane;
          let tile_column = at / ${tileRowWords}u;
          let tile_row = at % ${tileRowWords}u;
          let column = first_column * ${perWord}u + tile_column;
          let row = first_row + tile_row;
          if (tile_column < ${tileColumnElements}u && column < ${columns.size}u && row < ${rowWords}u) { y[${to}] = ${gathered.join(" | ")}; }
        }
      }
    `,
  };
};
