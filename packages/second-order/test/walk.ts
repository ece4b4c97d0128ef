import type { GradientTransformation, NdArray, Tensor } from "@skein/tensor-core";
import { expect } from "vitest";
import { runRanks } from "./world.ts";

export type Arrays = Readonly<Record<string, NdArray>>;
type Tensors = Readonly<Record<string, Tensor>>;

const numbersOf = (tree: unknown): Record<string, number[]> =>
  Object.fromEntries(Object.entries(tree as Arrays).map(([path, array]) => [path, array.toNumbers()]));

interface WalkOptions {
  readonly numRanks?: number;
  readonly refresh?: (step: number) => boolean;
  readonly first?: (step: number) => boolean;
}

/**
 * Returns the updates of several steps with the given gradients and constant parameters, for each of `numRanks` ranks.
 */
export const walked = <State>(
  optimizer: GradientTransformation<State>,
  params: Arrays,
  gradients: readonly Arrays[],
  { numRanks = 1, refresh = () => true, first = () => false }: WalkOptions = {},
): Record<string, number[]>[][] => {
  const steps = (own: Tensors, all: readonly Tensors[]): Tensors[] => {
    let state = optimizer.init(own);
    return all.map((each, number) => {
      const [updates, next] = optimizer.update(each, state, {
        params: own,
        refresh: refresh(number),
        first: first(number),
      });
      state = next;
      return updates;
    });
  };
  const args = Array.from({ length: numRanks }, () => [params, gradients]);
  return runRanks(steps as never, args as never).map((rank) => (rank as unknown as Arrays[]).map(numbersOf));
};

export const expectNear = (actual: readonly number[], expected: readonly number[], relative = 1e-5): void => {
  expect(actual.length).toBe(expected.length);
  const size = Math.max(1e-20, ...expected.map(Math.abs));
  actual.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(relative * size));
};
