import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { identity } from "../functions/elementwise.ts";
import { currentTrace, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/** A value on the way from parameters to a loss. */
export interface Tap {
  readonly value: Tensor;
  /**
   * What is carried back to it: the derivative of the loss with respect to it. Zeros for integers, and where the loss
   * does not depend on it.
   */
  readonly cotangent: Tensor;
}

/** Tapped values by name. */
export type Taps = { readonly [name: string]: Tap };

/** Ask for what `tap` has named. */
export interface TapOptions {
  readonly taps: true;
}

/**
 * Give a value a name, by which `valueAndGrad(fn, { taps: true })` returns it and its cotangent: statistics of layers
 * without hooks.
 *
 * Names are those of one differentiated function; the innermost that asks for taps gets them. Where none asks, it does
 * nothing, and so it does in the composition of a user's operator. What is returned and not used is not computed.
 *
 * @param name not yet given to another value of the function.
 * @returns the same value; what is computed of it goes on from there.
 * @throws ArgumentError for a name that is taken.
 * @example const hidden = relu(tap("hidden", dense(params, x)));
 */
export const tap = (name: string, x: Tensor): Tensor => {
  const { taps } = requireOperands("tap", [x], {});
  if (typeof name !== "string" || name === "")
    throw new ArgumentError(`tap: its name is ${describe(name)}; write tap("name", x)`);
  if (taps === undefined) return x;
  if (taps.values.has(name))
    throw new ArgumentError(
      `tap: "${name}" already names another value of this function; a name stands for one value, so put what tells them apart in front, such as "block-0/${name}"`,
    );
  const named = taps.mark(x, name);
  taps.values.set(name, named);
  return named;
};

/**
 * Run `fn`, and gather what it taps.
 *
 * @param mark makes of a value a node of its own, which the name then stands for.
 */
export const gatherTaps = <T>(
  fn: () => T,
  mark: (x: Tensor, name: string) => Tensor = (x) => identity(x),
): { readonly result: T; readonly taps: ReadonlyMap<string, Tensor> } => {
  const state = currentTrace("valueAndGrad");
  const outer = state.taps;
  const values = new Map<string, Tensor>();
  state.taps = { values, mark };
  try {
    return { result: fn(), taps: values };
  } finally {
    state.taps = outer;
  }
};
