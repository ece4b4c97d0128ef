import { NdArray } from "@skein/tensor-core";
import { firstDifference } from "@skein/testing";
import { expect } from "vitest";

/** Arrays by name, such as the gradients of experts. */
export type Arrays = Readonly<Record<string, NdArray>>;

/** Compares sums over many terms, each rounded to f32. The tolerance grows with the summed magnitudes. */
export const expectClose = (actual: readonly number[], expected: readonly number[], what: string): void => {
  const greatest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  expect(firstDifference(actual, expected, { absolute: 2e-5 * greatest, relative: 0 }), what).toBeUndefined();
};

export const expectCloseTrees = (actual: Arrays, expected: Arrays, what: string): void => {
  expect(Object.keys(actual)).toEqual(Object.keys(expected));
  for (const name of Object.keys(expected))
    expectClose(actual[name]!.toNumbers(), expected[name]!.toNumbers(), `${what}.${name}`);
};

/** Returns the elementwise sums of arrays with the same names. */
export const added = (trees: readonly Arrays[]): Arrays =>
  Object.fromEntries(
    Object.entries(trees[0]!).map(([name, { shape }]) => [
      name,
      NdArray.from(
        trees
          .map((tree) => tree[name]!.toNumbers())
          .reduce((total, numbers) => total.map((value, i) => value + numbers[i]!)),
        shape,
      ),
    ]),
  );
