// Scaled dot-product attention by tiles of 64 queries × 64 keys. The scores of only one tile are in memory at a time.
// Source: Dao et al. 2022, arXiv 2205.14135, algorithms 1 and 4. The five products of a tile run on the GEMM tiles.
import { scaleRow, sumOfBlockExps } from "./softmax";
import { expOf, logOf } from "./transcendental";
import { madd, maxLanes, sumLanes } from "./lanes";
import { packPanels } from "./pack";
import { ATTENTION_TILE } from "./attention-blocks";
import { PRODUCT_HEAD_BYTES, TILE_COLUMNS, TILE_ROWS } from "./blocks";
import { copyTile, tile4, tile6, tileRows } from "./tile";

const SCORE_ROW: usize = 4 * ATTENTION_TILE;
const SCORE_BYTES: usize = SCORE_ROW * ATTENTION_TILE;

/**
 * Returns the size in bytes of a packed operand: 64 sum indices × `width` columns, or `width` sum indices × 64 columns.
 */
// @ts-ignore: decorator
@inline
function panelBytes(width: i32): usize {
  return <usize>((width + 7) & ~7) * SCORE_ROW;
}

/**
 * Computes y = a · panels, or y += a · panels if `accumulate`. Rows of `a` are `aRow` bytes apart, and the terms of a
 * row are `aInner` bytes apart. Each panel has shape [inner][8].
 */
function multiplyPanels(a: usize, aRow: usize, aInner: usize, panels: usize, y: usize, yRow: usize, rows: i32, columns: i32, inner: i32, accumulate: bool, head: usize): void {
  const table = head;
  const out = head + 32;
  const edge = head + 64;
  const tile = head + 96;
  for (let r: usize = 0; r < 6; r++) store<u32>(edge + (r << 2), <u32>(tile + (r << 5)));
  for (let i = 0; i < rows;) {
    const take = tileRows(rows - i);
    const there = min(take, rows - i);
    for (let r = 0; r < take; r++) {
      const row = <usize>(i + min(r, there - 1));
      store<u32>(table + (<usize>r << 2), <u32>(a + row * aRow));
      store<u32>(out + (<usize>r << 2), <u32>(y + row * yRow));
    }
    let panel = panels;
    for (let j = 0; j < columns; j += TILE_COLUMNS) {
      const wide = min(TILE_COLUMNS, columns - j);
      const whole = there == take && wide == TILE_COLUMNS;
      const offset = whole ? <usize>j << 2 : 0;
      if (take == TILE_ROWS) tile6(table, 1, inner, aInner, panel, whole ? out : edge, offset, accumulate && whole);
      else tile4(table, 1, inner, aInner, panel, whole ? out : edge, offset, accumulate && whole);
      if (!whole) copyTile(tile, y + <usize>i * yRow + (<usize>j << 2), yRow, there, wide, false, accumulate);
      panel += <usize>inner << 5;
    }
    i += there;
  }
}

/**
 * Returns the number of keys of a tile that a query attends to. `ahead` is the position of the tile's first key minus
 * the query's position.
 */
// @ts-ignore: decorator
@inline
export function visible(causal: bool, ahead: i32, keys: i32): i32 {
  return causal ? max(0, min(keys, 1 - ahead)) : keys;
}

/** Returns the number of keys of a batch entry: the limit of the entry, or all keys if there are no limits. */
// @ts-ignore: decorator
@inline
function keysOf(limits: usize, entry: i32, keys: i32): i32 {
  return limits == 0 ? keys : max(0, min(keys, load<i32>(limits + (<usize>entry << 2))));
}

/**
 * Returns the key position of a batch entry's first query. A position from `limits` is clamped to −queries … keys, so
 * that sums of positions do not overflow.
 */
// @ts-ignore: decorator
@inline
function startOf(limits: usize, entry: i32, batch: i32, queries: i32, keys: i32): i32 {
  return limits == 0 ? keys - queries : max(-queries, min(keys, load<i32>(limits + (<usize>(batch + entry) << 2))));
}

/** Multiplies a row by `scale` and returns its maximum. Ignores NaN. */
// @ts-ignore: decorator
@inline
function scaleAndMax(row: usize, bytes: usize, scale: f32): f32 {
  let largest: f32 = -Infinity;
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    let lanes = f32x4.splat(-Infinity);
    for (; i + 16 <= bytes; i += 16) {
      const scaled = f32x4.mul(v128.load(row + i), f32x4.splat(scale));
      v128.store(row + i, scaled);
      lanes = f32x4.pmax(lanes, scaled);
    }
    largest = maxLanes(lanes);
  }
  for (; i < bytes; i += 4) {
    const scaled = load<f32>(row + i) * scale;
    store<f32>(row + i, scaled);
    largest = max(largest, scaled);
  }
  return largest;
}

/**
 * Computes out = softmax(scale · q kᵀ) v and the logsumexp of the scores. `q` and `out` have shape [batch, heads,
 * queries, width]. `group` consecutive heads share keys and values of shape [capacity, width]. `limits` is the address
 * of the key lengths for all batch entries, followed by the positions of their first queries; 0 means no limits.
 *
 * Lines are the heads of all batch entries, batch · heads in total. A call computes lines `first` … `last` − 1. Scratch
 * (size computed in `src/ops/attention.ts`): scratch head of the matrix product, scores, two packed operands, a maximum
 * per query of the tile.
 */
export function attention(
  out: usize, logSums: usize, q: usize, k: usize, v: usize, limits: usize,
  batch: i32, heads: i32, group: i32, queries: i32, capacity: i32, width: i32, causal: bool, scale: f32, scratch: usize, first: i32, last: i32,
): void {
  const rowBytes = <usize>width << 2;
  const scores = scratch + PRODUCT_HEAD_BYTES;
  const keyPanels = scores + SCORE_BYTES;
  const valuePanels = keyPanels + panelBytes(width);
  const maxima = valuePanels + panelBytes(width);
  out += <usize>(first * queries) * rowBytes;
  q += <usize>(first * queries) * rowBytes;
  logSums += <usize>(first * queries) << 2;
  k += <usize>(first / group * capacity) * rowBytes;
  v += <usize>(first / group * capacity) * rowBytes;
  for (let h = first; h < last; h++) {
    const keys = keysOf(limits, h / heads, capacity);
    const diagonal = startOf(limits, h / heads, batch, queries, capacity);
    for (let q0 = 0; q0 < queries; q0 += ATTENTION_TILE) {
      const tall = min(ATTENTION_TILE, queries - q0);
      const result = out + <usize>q0 * rowBytes;
      const sums = logSums + (<usize>q0 << 2);
      memory.fill(result, 0, <usize>tall * rowBytes);
      for (let i: usize = 0; i < <usize>tall; i++) {
        store<f32>(maxima + (i << 2), -Infinity);
        store<f32>(sums + (i << 2), 0);
      }
      const end = causal ? min(keys, q0 + tall + diagonal) : keys;
      for (let k0 = 0; k0 < end; k0 += ATTENTION_TILE) {
        const wide = min(ATTENTION_TILE, keys - k0);
        packPanels(k + <usize>k0 * rowBytes, rowBytes, 4, wide, width, keyPanels, <usize>width << 5);
        packPanels(v + <usize>k0 * rowBytes, 4, rowBytes, width, wide, valuePanels, <usize>wide << 5);
        multiplyPanels(q + <usize>q0 * rowBytes, rowBytes, 4, keyPanels, scores, SCORE_ROW, tall, wide, width, false, scratch);
        for (let i = 0; i < tall; i++) {
          const row = scores + <usize>i * SCORE_ROW;
          const seen = visible(causal, k0 - (q0 + i + diagonal), wide);
          const bytes = <usize>seen << 2;
          if (seen < wide) memory.fill(row + bytes, 0, (<usize>wide << 2) - bytes);
          if (seen == 0) continue;
          const at = <usize>i << 2;
          const before = load<f32>(maxima + at);
          const largest = max(before, scaleAndMax(row, bytes, scale));
          const total = sumOfBlockExps(row, row, bytes, largest, true);
          if (largest != before) {
            // Rescale sums that were computed with a smaller maximum. Before the first tile, the sums are empty.
            const shrink = expOf<f32>(before - largest);
            store<f32>(maxima + at, largest);
            store<f32>(sums + at, load<f32>(sums + at) * shrink + total);
            scaleRow(result + <usize>i * rowBytes, result + <usize>i * rowBytes, rowBytes, shrink);
          } else {
            store<f32>(sums + at, load<f32>(sums + at) + total);
          }
        }
        multiplyPanels(scores, SCORE_ROW, 4, valuePanels, result, rowBytes, tall, width, wide, true, scratch);
      }
      for (let i: usize = 0; i < <usize>tall; i++) {
        const total = load<f32>(sums + (i << 2));
        // The result of a query without visible keys stays zero.
        if (total != 0) scaleRow(result + i * rowBytes, result + i * rowBytes, rowBytes, <f32>1 / total);
        store<f32>(sums + (i << 2), load<f32>(maxima + (i << 2)) + logOf<f32>(total));
      }
    }
    out += <usize>queries * rowBytes;
    q += <usize>queries * rowBytes;
    logSums += <usize>queries << 2;
    if ((h + 1) % group == 0) {
      k += <usize>capacity * rowBytes;
      v += <usize>capacity * rowBytes;
    }
  }
}

/**
 * Replaces a row of scores s with weights exp(scale · s − logSum), and weight gradients d with score gradients scale ·
 * weight · (d − delta).
 */
// @ts-ignore: decorator
@inline
export function weightsOfRow(weights: usize, gradients: usize, bytes: usize, scale: f32, logSum: f32, delta: f32): void {
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; i + 16 <= bytes; i += 16) {
      const weight = expOf<v128>(madd(v128.load(weights + i), f32x4.splat(scale), f32x4.splat(-logSum)));
      v128.store(weights + i, weight);
      const gradient = f32x4.mul(f32x4.sub(v128.load(gradients + i), f32x4.splat(delta)), f32x4.splat(scale));
      v128.store(gradients + i, f32x4.mul(weight, gradient));
    }
  }
  for (; i < bytes; i += 4) {
    const weight = expOf<f32>(load<f32>(weights + i) * scale - logSum);
    store<f32>(weights + i, weight);
    store<f32>(gradients + i, weight * ((load<f32>(gradients + i) - delta) * scale));
  }
}

/** Computes δ = Σ g · out for each query. */
export function deltas(to: usize, g: usize, out: usize, queries: i32, rowBytes: usize): void {
  for (let query = 0; query < queries; query++) {
    let total: f32 = 0;
    let i: usize = 0;
    if (ASC_FEATURE_SIMD) {
      let lanes = f32x4.splat(0);
      for (; i + 16 <= rowBytes; i += 16) lanes = madd(v128.load(g + i), v128.load(out + i), lanes);
      total = sumLanes(lanes);
    }
    for (; i < rowBytes; i += 4) total += load<f32>(g + i) * load<f32>(out + i);
    store<f32>(to + (<usize>query << 2), total);
    g += rowBytes;
    out += rowBytes;
  }
}

/**
 * Computes the gradients of `attention`, for lines `first` … `last` − 1, which must be complete groups. The weights of
 * each tile are recomputed from the logsumexp. Scratch (size computed in `src/ops/attention-backward.ts`): scratch head
 * of the matrix product, weights and their gradients, five packed operands, δ of all queries.
 */
export function attentionBackward(
  dq: usize, dk: usize, dv: usize, q: usize, k: usize, v: usize, out: usize, logSums: usize, g: usize, limits: usize,
  batch: i32, heads: i32, group: i32, queries: i32, capacity: i32, width: i32, causal: bool, scale: f32, scratch: usize, first: i32, last: i32,
): void {
  const rowBytes = <usize>width << 2;
  const packed = panelBytes(width);
  const weights = scratch + PRODUCT_HEAD_BYTES;
  const gradients = weights + SCORE_BYTES;
  const keyPanels = gradients + SCORE_BYTES;
  const keyRowPanels = keyPanels + packed;
  const valuePanels = keyRowPanels + packed;
  const queryPanels = valuePanels + packed;
  const outPanels = queryPanels + packed;
  const delta = outPanels + packed;
  const queryBytes = <usize>queries * rowBytes;
  const keyBytes = <usize>capacity * rowBytes;
  q += <usize>first * queryBytes;
  g += <usize>first * queryBytes;
  out += <usize>first * queryBytes;
  dq += <usize>first * queryBytes;
  logSums += <usize>(first * queries) << 2;
  k += <usize>(first / group) * keyBytes;
  v += <usize>(first / group) * keyBytes;
  dk += <usize>(first / group) * keyBytes;
  dv += <usize>(first / group) * keyBytes;
  memory.fill(dq, 0, <usize>(last - first) * queryBytes);
  memory.fill(dk, 0, <usize>((last - first) / group) * keyBytes);
  memory.fill(dv, 0, <usize>((last - first) / group) * keyBytes);
  for (let h = first; h < last; h++) {
    const keys = keysOf(limits, h / heads, capacity);
    const diagonal = startOf(limits, h / heads, batch, queries, capacity);
    deltas(delta, g, out, queries, rowBytes);
    for (let k0 = 0; k0 < keys; k0 += ATTENTION_TILE) {
      const wide = min(ATTENTION_TILE, keys - k0);
      const key = <usize>k0 * rowBytes;
      packPanels(k + key, rowBytes, 4, wide, width, keyPanels, <usize>width << 5);
      packPanels(v + key, rowBytes, 4, wide, width, valuePanels, <usize>width << 5);
      packPanels(k + key, 4, rowBytes, width, wide, keyRowPanels, <usize>wide << 5);
      // The first query that attends to key k0 is k0 − diagonal.
      const firstQuery = causal ? max(0, k0 - diagonal) / ATTENTION_TILE * ATTENTION_TILE : 0;
      for (let q0 = firstQuery; q0 < queries; q0 += ATTENTION_TILE) {
        const tall = min(ATTENTION_TILE, queries - q0);
        const query = <usize>q0 * rowBytes;
        multiplyPanels(q + query, rowBytes, 4, keyPanels, weights, SCORE_ROW, tall, wide, width, false, scratch);
        multiplyPanels(g + query, rowBytes, 4, valuePanels, gradients, SCORE_ROW, tall, wide, width, false, scratch);
        for (let i = 0; i < tall; i++) {
          const row = <usize>i * SCORE_ROW;
          const at = <usize>(q0 + i) << 2;
          const bytes = <usize>visible(causal, k0 - (q0 + i + diagonal), wide) << 2;
          weightsOfRow(weights + row, gradients + row, bytes, scale, load<f32>(logSums + at), load<f32>(delta + at));
          if (bytes < <usize>wide << 2) {
            memory.fill(weights + row + bytes, 0, (<usize>wide << 2) - bytes);
            memory.fill(gradients + row + bytes, 0, (<usize>wide << 2) - bytes);
          }
        }
        packPanels(q + query, 4, rowBytes, width, tall, queryPanels, <usize>tall << 5);
        packPanels(g + query, 4, rowBytes, width, tall, outPanels, <usize>tall << 5);
        multiplyPanels(weights, 4, SCORE_ROW, outPanels, dv + key, rowBytes, wide, width, tall, true, scratch);
        multiplyPanels(gradients, 4, SCORE_ROW, queryPanels, dk + key, rowBytes, wide, width, tall, true, scratch);
        multiplyPanels(gradients, SCORE_ROW, 4, keyRowPanels, dq + query, rowBytes, tall, width, wide, true, scratch);
      }
    }
    q += queryBytes;
    g += queryBytes;
    out += queryBytes;
    dq += queryBytes;
    logSums += <usize>queries << 2;
    if ((h + 1) % group == 0) {
      k += keyBytes;
      v += keyBytes;
      dk += keyBytes;
      dv += keyBytes;
    }
  }
}
