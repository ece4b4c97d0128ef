import {
  add,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  cast,
  full,
  multiply,
  notEqual,
  packBits,
  type Shape,
  type Tensor,
  unpackBits,
} from "@skein/tensor-core";

/**
 * Whole numbers by their bits: plane k, u32 `[⌈n/32⌉]`, holds bit k of n numbers, 32 to a word. Any width from 1 bit
 * travels without waste.
 */
export type BitPlanes = readonly Tensor[];

/** Planes that numbers from 0 to `most` need. */
export const planesFor = (most: number): number => 32 - Math.clz32(most);

/**
 * Lay whole numbers into planes.
 *
 * @param numbers u32 [n], each from 0 to `most`.
 * Cost: ⌈log₂(most + 1)⌉ bits per number.
 */
export const packPlanes = (numbers: Tensor, most: number): BitPlanes =>
  Array.from({ length: planesFor(most) }, (_, k) => packBits(notEqual(bitwiseAnd(numbers, 2 ** k), 0)));

/** The first `count` numbers that lie in planes, as f32 `[count]`. */
export const unpackPlanes = (planes: BitPlanes, count: number): Tensor =>
  planes.map((plane, k) => multiply(cast(unpackBits(plane, count), "f32"), 2 ** k)).reduce((sum, one) => add(sum, one));

/** One number, from 0 to 2³² − 1, in all places. */
export const constantPlanes = (value: number, shape: Shape): BitPlanes =>
  Array.from({ length: planesFor(value) }, (_, k) =>
    full(shape, Math.floor(value / 2 ** k) % 2 === 1 ? 2 ** 32 - 1 : 0, "u32"),
  );

/** One plane wider than the wider of both. Ripple carry: as many steps as planes, each on 32 numbers at a time. */
const addTwo = (a: BitPlanes, b: BitPlanes): BitPlanes => {
  const [wide, narrow] = a.length >= b.length ? [a, b] : [b, a];
  let carry: Tensor | undefined;
  const sums = wide.map((x, k) => {
    const y = narrow[k];
    const other = y ?? carry;
    if (other === undefined) return x;
    const half = bitwiseXor(x, other);
    const both = bitwiseAnd(x, other);
    if (y === undefined || carry === undefined) {
      carry = both;
      return half;
    }
    const total = bitwiseXor(half, carry);
    carry = bitwiseOr(both, bitwiseAnd(half, carry));
    return total;
  });
  return carry === undefined ? sums : [...sums, carry];
};

/**
 * Add numbers place by place, without unpacking them. `most` is what a sum can be at most: planes above are 0 and left
 * out.
 */
export const addPlanes = (terms: readonly BitPlanes[], most: number): BitPlanes =>
  terms.reduce((sum, term) => addTwo(sum, term).slice(0, planesFor(most)));
