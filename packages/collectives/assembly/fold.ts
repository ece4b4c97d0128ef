// CRC-32C without tables. P has multiples with six terms only: x^8c + x^8(c−d1) + … + x^8(c−d4) + 1 ≡ 0 (mod P), so a
// byte of a message may be struck out if it is added (xor) to the bytes d1, …, d4 and c places further on. Striking out
// all bytes from the front, each after it has got what others add to it, leaves a short message with the same
// remainder:
//
//   w[i] = m[i] ^ w[i − d1] ^ w[i − d2] ^ w[i − d3] ^ w[i − d4] ^ w[i − c]
//
// Found by search over all c ≤ 330 (times 1, 4 and 16 bytes) with distances of 16 or more, one vector. The 836 are 209
// · 4 with the distances · 4, as P(x)^4 = P(x^4). Longer distances wait less for stores that are still on their way.

/** Bytes that a fold over the long distances leaves at least; a multiple of 64 from 836 on. */
export const longRest: usize = 896;
/** The same for the short distances, 209, in whole vectors. */
export const shortRest: usize = 224;

export const longHistory: usize = 836;
export const shortHistory: usize = 209;

/** What becomes of the 16 bytes of the message at `m` when the history of `c` bytes before them lies at `w`. */
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
