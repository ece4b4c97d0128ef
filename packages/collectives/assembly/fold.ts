// CRC-32C without tables. The CRC polynomial P divides some polynomials of only six terms, x^8c + x^8(c−d1) + … +
// x^8(c−d4) + 1. Therefore a byte of a message can be removed (folded) if it is added (xor) to the bytes d1, …, d4 and
// c positions later. Folding all bytes from front to back leaves a short message with the same remainder:
//
//   w[i] = m[i] ^ w[i − d1] ^ w[i − d2] ^ w[i − d3] ^ w[i − d4] ^ w[i − c]
//
// The distances were found by a search over all c ≤ 330 (times 1, 4 and 16 bytes) with distances of at least 16 bytes,
// one vector. 836 is 209 · 4, and its distances are multiplied by 4, because P(x)^4 = P(x^4). With longer distances,
// loads wait less often for stores in flight.

/**
 * Minimum number of message bytes that the fold with the long distances (up to 836 bytes) leaves unfolded: 836 rounded
 * up to a multiple of 64.
 */
export const longRest: usize = 896;
/**
 * Minimum number of message bytes that the fold with the short distances (up to 209 bytes) leaves unfolded: 209 rounded
 * up to a multiple of 16.
 */
export const shortRest: usize = 224;

export const longHistory: usize = 836;
export const shortHistory: usize = 209;

/**
 * Folds the 16 message bytes at `m`, and returns the 16 folded bytes. `w` is the address of the history: the 836 folded
 * bytes before these message bytes.
 */
// @ts-ignore: decorator
@inline
export function longStep(m: usize, w: usize): v128 {
  const near = v128.xor(v128.load(w, 836 - 260, 1), v128.load(w, 836 - 620, 1));
  const far = v128.xor(v128.load(w, 836 - 680, 1), v128.load(w, 836 - 780, 1));
  return v128.xor(v128.xor(v128.load(m, 0, 1), v128.load(w, 0, 1)), v128.xor(near, far));
}

// @ts-ignore: decorator
@inline
export function shortStep(m: usize, w: usize): v128 {
  const near = v128.xor(v128.load(w, 209 - 65, 1), v128.load(w, 209 - 155, 1));
  const far = v128.xor(v128.load(w, 209 - 170, 1), v128.load(w, 209 - 195, 1));
  return v128.xor(v128.xor(v128.load(m, 0, 1), v128.load(w, 0, 1)), v128.xor(near, far));
}
