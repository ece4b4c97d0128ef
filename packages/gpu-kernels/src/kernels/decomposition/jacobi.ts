import { wgsl } from "../../wgsl.ts";

/** Number of matrix rows that one workgroup rotates. The matrix and its rotations take 8.4 KiB of workgroup memory. */
export const jacobiRows = 32;

// Distance between rows in workgroup memory. Odd, so that lanes along a column read different banks.
const stride = jacobiRows + 1;

/** Number of invocations of a workgroup that runs `jacobi_sweep`: about one per 2 × 2 block of two index pairs. */
export const jacobiLanes = 128;

/**
 * Maximum magnitude of off-diagonal entries that are treated as zero. The largest entry is between 1 and 2, so an
 * eigenvalue changes by less than the rounding error of the largest eigenvalue.
 */
const negligible = "0x1p-30f";

/** WGSL that pairs `count` indices (even) as in a round-robin tournament: all pairs occur in `count` − 1 rounds. */
export const pairFunctions: string = wgsl`
  fn first_of(pair: u32, round: u32, count: u32) -> u32 {
    if (pair == 0u) { return count - 1u; }
    return (round + pair) % (count - 1u);
  }
  fn second_of(pair: u32, round: u32, count: u32) -> u32 { return (round + count - 1u - pair) % (count - 1u); }
`;

/**
 * WGSL of `fn jacobi_sweep(lane, count)`: rotates every pair of rows and columns of the symmetric `count` × `count`
 * matrix in `block` once; `count` is even and at most 32. `count`/2 disjoint pairs are rotated at a time. The rows of
 * `turn` are rotated by the same angles. The rows of both arrays are `jacobi_stride` apart. `moved` becomes 1 if there
 * was a rotation.
 *
 * Two barriers per round. The entries of a single pair are set to their exact values. All other entries form 2 × 2
 * blocks of two pairs. One invocation updates each block and writes the mirrored block, so the matrix stays exactly
 * symmetric.
 *
 * Source: Golub and Van Loan, Matrix Computations, sections 8.5.2 and 8.5.7.
 */
export const jacobiCode: string = wgsl`
  const jacobi_stride = ${stride}u;
  var<workgroup> block: array<f32, ${jacobiRows * stride}>;
  var<workgroup> turn: array<f32, ${jacobiRows * stride}>;
  var<workgroup> cosines: array<f32, ${jacobiRows / 2}>;
  var<workgroup> sines: array<f32, ${jacobiRows / 2}>;
  var<workgroup> moved: atomic<u32>;
  ${pairFunctions}
  fn choose_rotation(pair: u32, round: u32, count: u32) {
    let p = first_of(pair, round, count);
    let q = second_of(pair, round, count);
    let off = block[p * ${stride}u + q];
    var c = 1.0;
    var s = 0.0;
    if (abs(off) > ${negligible}) {
      let upper = block[p * ${stride}u + p];
      let lower = block[q * ${stride}u + q];
      let half = (lower - upper) / (2.0 * off);
      let t = select(1.0, -1.0, half < 0.0) / (abs(half) + sqrt(fma(half, half, 1.0)));
      c = 1.0 / sqrt(fma(t, t, 1.0));
      s = t * c;
      // Roots and quotients may be off by a few roundings; thousands of turns would stretch the vectors.
      let excess = 0.5 * fma(-s, s, fma(-c, c, 1.0));
      c = fma(c, excess, c);
      s = fma(s, excess, s);
      block[p * ${stride}u + p] = fma(-t, off, upper);
      block[q * ${stride}u + q] = fma(t, off, lower);
      block[p * ${stride}u + q] = 0.0;
      block[q * ${stride}u + p] = 0.0;
      atomicStore(&moved, 1u);
    }
    cosines[pair] = c;
    sines[pair] = s;
  }
  fn turn_blocks(i: u32, j: u32, round: u32, count: u32) {
    let pi = first_of(i, round, count);
    let qi = second_of(i, round, count);
    let pj = first_of(j, round, count);
    let qj = second_of(j, round, count);
    let a = block[pi * ${stride}u + pj];
    let b = block[pi * ${stride}u + qj];
    let c = block[qi * ${stride}u + pj];
    let d = block[qi * ${stride}u + qj];
    let ci = cosines[i];
    let si = sines[i];
    let cj = cosines[j];
    let sj = sines[j];
    let top = vec2<f32>(ci * a - si * c, ci * b - si * d);
    let bottom = vec2<f32>(si * a + ci * c, si * b + ci * d);
    let pp = cj * top.x - sj * top.y;
    let pq = sj * top.x + cj * top.y;
    let qp = cj * bottom.x - sj * bottom.y;
    let qq = sj * bottom.x + cj * bottom.y;
    block[pi * ${stride}u + pj] = pp;
    block[pj * ${stride}u + pi] = pp;
    block[pi * ${stride}u + qj] = pq;
    block[qj * ${stride}u + pi] = pq;
    block[qi * ${stride}u + pj] = qp;
    block[pj * ${stride}u + qi] = qp;
    block[qi * ${stride}u + qj] = qq;
    block[qj * ${stride}u + qi] = qq;
  }
  fn jacobi_sweep(lane: u32, count: u32) {
    let pairs = count / 2u;
    for (var round = 0u; round < count - 1u; round++) {
      workgroupBarrier();
      if (lane < pairs) { choose_rotation(lane, round, count); }
      workgroupBarrier();
      for (var e = lane; e < pairs * pairs; e += ${jacobiLanes}u) {
        if (e % pairs < e / pairs) { turn_blocks(e / pairs, e % pairs, round, count); }
      }
      for (var e = lane; e < pairs * count; e += ${jacobiLanes}u) {
        let pair = e / count;
        let column = e % count;
        let p = first_of(pair, round, count) * ${stride}u + column;
        let q = second_of(pair, round, count) * ${stride}u + column;
        let x = turn[p];
        let y = turn[q];
        turn[p] = cosines[pair] * x - sines[pair] * y;
        turn[q] = sines[pair] * x + cosines[pair] * y;
      }
    }
    workgroupBarrier();
  }
`;
