// Operations that depend on the order of elements along the middle dimension of [outer, size, inner]: running sums, and
// positions of extremes.
import { keyOf } from "./order";

/** Number of columns that are summed together. Their f64 totals take 4 KiB of scratch memory. */
const COLUMNS: i32 = 512;

/**
 * Computes running sums of f32 along the middle dimension, with f64 totals, from the end if `reverse`. `scratch` holds
 * 4 KiB.
 */
export function cumsumF32(x: usize, output: usize, outer: i32, size: i32, inner: i32, reverse: i32, scratch: usize): void {
  const stride = (<usize>inner) << 2;
  const start: usize = reverse && size > 0 ? <usize>(size - 1) * stride : 0;
  for (let o = 0; o < outer; o++) {
    if (inner == 1) {
      let total: f64 = 0;
      for (let row = 0, at = start; row < size; row++, at = reverse ? at - 4 : at + 4) {
        total += <f64>load<f32>(x + at);
        store<f32>(output + at, <f32>total);
      }
    }
    for (let first = inner == 1 ? 1 : 0; first < inner; first += COLUMNS) {
      const columns = min<i32>(COLUMNS, inner - first);
      memory.fill(scratch, 0, (<usize>columns) << 3);
      let at = start + ((<usize>first) << 2);
      for (let row = 0; row < size; row++) {
        for (let i = 0; i < columns; i++) {
          const total = scratch + ((<usize>i) << 3);
          const sum = load<f64>(total) + <f64>load<f32>(x + at + ((<usize>i) << 2));
          store<f64>(total, sum);
          store<f32>(output + at + ((<usize>i) << 2), <f32>sum);
        }
        at = reverse ? at - stride : at + stride;
      }
    }
    x += <usize>size * stride;
    output += <usize>size * stride;
  }
}

/** Computes running sums of i32 or u32 along the middle dimension, modulo 2^32. */
export function cumsumI32(x: usize, output: usize, outer: i32, size: i32, inner: i32, reverse: i32): void {
  const stride = (<usize>inner) << 2;
  for (let o = 0; o < outer; o++) {
    let at: usize = reverse && size > 0 ? <usize>(size - 1) * stride : 0;
    for (let row = 0; row < size; row++) {
      const before = reverse ? at + stride : at - stride;
      for (let i: usize = 0; i < stride; i += 4) {
        store<i32>(output + at + i, load<i32>(x + at + i) + (row == 0 ? 0 : load<i32>(output + before + i)));
      }
      at = reverse ? at - stride : at + stride;
    }
    x += <usize>size * stride;
    output += <usize>size * stride;
  }
}

/**
 * Writes the position of the largest (`flip` = 0) or smallest (`flip` = -1) element along the middle dimension, the
 * first position if several elements are equal. `kind` is the `Order` of the elements (see `order.ts`).
 */
export function argExtreme(x: usize, output: usize, outer: i32, size: i32, inner: i32, kind: i32, flip: u32): void {
  const width: usize = kind == 3 ? 1 : 4;
  const stride = <usize>inner * width;
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let at = x + <usize>i * width;
      let best: u32 = 0;
      let position = 0;
      for (let row = 0; row < size; row++, at += stride) {
        const key = keyOf(kind, at, flip);
        if (row == 0 || key > best) {
          best = key;
          position = row;
        }
      }
      store<i32>(output, position);
      output += 4;
    }
    x += <usize>size * stride;
  }
}
