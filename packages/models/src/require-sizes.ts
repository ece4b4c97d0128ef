import { ArgumentError } from "@skein/tensor-core";

/**
 * Checks the sizes of a model.
 * @throws ArgumentError unless all sizes are positive integers.
 */
export const requireSizes = (model: string, sizes: Readonly<Record<string, number>>): void => {
  for (const [name, size] of Object.entries(sizes))
    if (!Number.isInteger(size) || size < 1)
      throw new ArgumentError(`${model}: ${name} is ${size}; use an integer from 1`);
};
