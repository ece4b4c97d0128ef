import { elementCount, NdArray, type Shape } from "@skein/tensor-core";
import { normalArray } from "./seeded.ts";

/** Returns symmetric matrices [...batch, size, size] of standard normal values. */
export const symmetricArray = (batch: Shape, size: number, seed = 1): NdArray => {
  const values = normalArray([...batch, size, size], seed).toNumbers();
  const mirrored = values.map((_, at) => {
    const [i, j] = [Math.floor(at / size) % size, at % size];
    return values[at - i * size - j + Math.max(i, j) * size + Math.min(i, j)]!;
  });
  return NdArray.from(mirrored, [...batch, size, size]);
};

/**
 * Returns a dense symmetric matrix with given eigenvalues, up to the rounding of its entries to f32: `h diag(λ) h` with
 * the reflection h = I − 2 u uᵀ for a random unit vector u.
 */
export const withSpectrum = (eigenvalues: readonly number[], seed = 1): NdArray => {
  const size = eigenvalues.length;
  const u = normalArray([size], seed).toNumbers();
  const squares = u.reduce((sum, x) => sum + x * x, 0);
  const shares = u.map((x) => x / Math.sqrt(squares));
  const turned = shares.map((x, k) => x * eigenvalues[k]!);
  const inner = shares.reduce((sum, x, k) => sum + x * turned[k]!, 0);
  const values = Array.from({ length: elementCount([size, size]) }, (_, at) => {
    const [i, j] = [Math.floor(at / size), at % size];
    const diagonal = i === j ? eigenvalues[i]! : 0;
    return diagonal - 2 * (shares[i]! * turned[j]! + turned[i]! * shares[j]!) + 4 * inner * shares[i]! * shares[j]!;
  });
  return NdArray.from(values, [size, size]);
};

/** Returns `size` eigenvalues from 1 down to 1/condition, geometrically spaced. */
export const gradedSpectrum = (size: number, condition: number): number[] =>
  Array.from({ length: size }, (_, k) => condition ** (-k / Math.max(1, size - 1)));
