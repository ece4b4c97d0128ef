import type { Pass } from "../../kernel.ts";
import { batchCode, type Transposition } from "./transposition.ts";
import { affine } from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/**
 * Whether a matrix consists of complete blocks of 4 × 4 words: its sizes, strides and offset are multiples of 4 words.
 */
export const hasBlocks = ({ rows, columns, batch, offset }: Transposition, elementBytes: number): boolean =>
  elementBytes === 4 &&
  [rows.size, rows.inputStride, columns.size, columns.outputStride, offset].every((words) => words % 4 === 0) &&
  batch.every(({ inputStride, outputStride }) => inputStride % 4 === 0 && outputStride % 4 === 0);

/**
 * Transposes blocks of 4×4 words in registers, one block per invocation. Adjacent invocations write adjacent memory.
 * Cost: each word is read once and written once, without a barrier. If a workgroup is one CPU thread, this method is
 * several times faster than tiles in workgroup memory.
 */
export const transposeBlocksPass = ({ rows, columns, batch, offset }: Transposition): Pass => {
  const [rowBlocks, columnBlocks] = [rows.size / 4, columns.size / 4];
  const blocks = batch.reduce((product, { size }) => product * size, rowBlocks * columnBlocks);
  const names = batch.map((_, dim) => `b${dim}`);
  const vectors = (strides: readonly number[]): number[] => strides.map((stride) => stride / 4);
  const source = affine([...vectors(batch.map(({ inputStride }) => inputStride)), rows.inputStride, 1], offset / 4, [
    ...names,
    "row_block",
    "column_block",
  ]);
  const target = affine([...vectors(batch.map(({ outputStride }) => outputStride)), columns.outputStride, 1], 0, [
    ...names,
    "column_block",
    "row_block",
  ]);
  const [rowStep, columnStep] = [rows.inputStride / 4, columns.outputStride / 4];
  const lines = ["x", "y", "z", "w"].map(
    (part, i) => `y[target_at + ${i * columnStep}u] = vec4<u32>(a.${part}, b.${part}, c.${part}, d.${part});`,
  );
  return {
    label: "transpose blocks of 4x4",
    bindings: [
      { name: "x", type: "array<vec4<u32>>", source: { input: 0 }, access: "read" },
      { name: "y", type: "array<vec4<u32>>", source: { output: 0 }, access: "write" },
    ],
    workgroupSize: lanes,
    groups: Math.ceil(blocks / lanes),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${lanes}u + lane;
        if (at >= ${blocks}u) { return; }
        let row_block = at % ${rowBlocks}u;
        let r0 = at / ${rowBlocks}u;
        let column_block = r0 % ${columnBlocks}u;
        let matrix = r0 / ${columnBlocks}u;
        ${batchCode(batch)}
        let source_at = ${source};
        let a = x[source_at];
        let b = x[source_at + ${rowStep}u];
        let c = x[source_at + ${2 * rowStep}u];
        let d = x[source_at + ${3 * rowStep}u];
        let target_at = ${target};
        ${lines}
      }
    `,
  };
};
