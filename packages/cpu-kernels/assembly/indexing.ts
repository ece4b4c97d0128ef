// Gather and scatter of rows. Indices are compared as unsigned integers, so negative indices are out of range.
import { copyBytes, fillBytes } from "./movement";

/**
 * Gathers rows of `rowBytes` bytes in `outer` blocks. Row i of an output block [count] is a copy of input row
 * `indices[i]` in the corresponding block [size]. If an index is out of range, its output row is filled with the 4-byte
 * `pattern`.
 */
export function gatherRows(output: usize, input: usize, indices: usize, outer: i32, size: i32, rowBytes: usize, count: i32, pattern: u32): void {
  for (let block = 0; block < outer; block++) {
    for (let i = 0; i < count; i++) {
      const row = load<i32>(indices + (<usize>i << 2));
      if (<u32>row < <u32>size) copyBytes(output, input + <usize>row * rowBytes, rowBytes);
      else fillBytes(output, pattern, rowBytes);
      output += rowBytes;
    }
    input += <usize>size * rowBytes;
  }
}

// @ts-ignore: decorator
@inline
function addRows<T>(output: usize, indices: usize, updates: usize, outer: i32, size: i32, inner: i32, count: i32): void {
  const rowBytes = <usize>inner << 2;
  for (let block = 0; block < outer; block++) {
    for (let i = 0; i < count; i++) {
      const row = load<i32>(indices + (<usize>i << 2));
      if (<u32>row < <u32>size) {
        const target = output + <usize>row * rowBytes;
        let j: usize = 0;
        if (ASC_FEATURE_SIMD) {
          for (; j + 16 <= rowBytes; j += 16) v128.store(target + j, v128.add<T>(v128.load(target + j), v128.load(updates + j)));
        }
        for (; j < rowBytes; j += 4) store<T>(target + j, load<T>(target + j) + load<T>(updates + j));
      }
      updates += rowBytes;
    }
    output += <usize>size * rowBytes;
  }
}

/**
 * Adds row i of each `updates` block to row `indices[i]` of the output block, for ascending i. Rows have `inner`
 * elements. Rows with an index out of range are ignored.
 */
export function scatterAddF32(output: usize, indices: usize, updates: usize, outer: i32, size: i32, inner: i32, count: i32): void {
  addRows<f32>(output, indices, updates, outer, size, inner, count);
}

/** Variant of `scatterAddF32` for signed or unsigned 32-bit integers. Sums are modulo 2^32. */
export function scatterAddI32(output: usize, indices: usize, updates: usize, outer: i32, size: i32, inner: i32, count: i32): void {
  addRows<i32>(output, indices, updates, outer, size, inner, count);
}
