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
 * Unsigned integers as bit planes: plane k, u32 `[⌈n/32⌉]`, contains bit k of n integers, 32 integers per word.
 * Integers of any bit width are sent without padding bits.
 */
export type BitPlanes = readonly Tensor[];

/** Returns the number of planes for integers from 0 to `most`. */
export const planesFor = (most: number): number => 32 - Math.clz32(most);

/**
 * Packs integers into bit planes.
 *
 * @param numbers u32 [n], each from 0 to `most`.
 * Cost: ⌈log₂(most + 1)⌉ bits per integer.
 */
export const packPlanes = (numbers: Tensor, most: number): BitPlanes =>
  Array.from({ length: planesFor(most) }, (_, k) => packBits(notEqual(bitwiseAnd(numbers, 2 ** k), 0)));

/** Unpacks the first `count` integers of bit planes as f32 `[count]`. */
export const unpackPlanes = (planes: BitPlanes, count: number): Tensor =>
  planes.map((plane, k) => multiply(cast(unpackBits(plane, count), "f32"), 2 ** k)).reduce((sum, one) => add(sum, one));

/** Returns the bit planes of one integer, from 0 to 2³² − 1, repeated for all elements. */
export const constantPlanes = (value: number, shape: Shape): BitPlanes =>
  Array.from({ length: planesFor(value) }, (_, k) =>
    full(shape, Math.floor(value / 2 ** k) % 2 === 1 ? 2 ** 32 - 1 : 0, "u32"),
  );

/**
 * Adds two sets of planes. The sum has one plane more than the wider operand. Ripple-carry addition: one step per
 * plane, 32 integers at a time.
 */
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
 * Adds packed integers element by element, without unpacking them. `most` is the maximum value of a sum. Planes above
 * the highest bit of `most` are 0 and are omitted.
 */
export const addPlanes = (terms: readonly BitPlanes[], most: number): BitPlanes =>
  terms.reduce((sum, term) => addTwo(sum, term).slice(0, planesFor(most)));
