import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { identity } from "../functions/elementwise.ts";
import { currentTrace, requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";

/** Named intermediate value of a differentiated function. */
export interface Tap {
  readonly value: Tensor;
  /**
   * Cotangent: the derivative of the loss with respect to the value. Zeros for integers, and if the loss does not
   * depend on the value.
   */
  readonly cotangent: Tensor;
}

/** Intermediate values recorded by `tap`, by tap name. */
export type Taps = { readonly [name: string]: Tap };

/** Option of `valueAndGrad` that requests the values recorded by `tap`. */
export interface TapOptions {
  readonly taps: true;
}

/**
 * Records an intermediate value under a name, so that `valueAndGrad(fn, { taps: true })` returns the value and its
 * cotangent. For example, this computes statistics of layers without hooks.
 *
 * Tap names are local to a differentiated function: the innermost function that requests taps returns them. If no
 * function requests taps, and in the composition of a user's operator, `tap` has no effect. Unused taps are not
 * computed.
 *
 * @param name Name of the value, unique among the taps of the function.
 * @returns A tensor equal to `x`, which the following computation must use instead of `x`.
 * @throws ArgumentError if the name is already used.
 * @example
 * ```ts
 * const loss = (x: Tensor) => sum(square(tap("hidden", multiply(x, 2))));
 * const step = (x: Tensor) => valueAndGrad(loss, { taps: true })(x).taps["hidden"]!.value;
 * console.log((await evaluate(step, referenceBackend())(NdArray.from([1, 2]))).toNumbers()); // [2, 4]
 * ```
 */
export const tap = (name: string, x: Tensor): Tensor => {
  const { taps } = requireOperands("tap", [x], {});
  if (typeof name !== "string" || name === "")
    throw new ArgumentError(`tap: its name is ${describe(name)}; write tap("name", x)`);
  if (taps === undefined) return x;
  if (taps.values.has(name))
    throw new ArgumentError(
      `tap: "${name}" already names another value of this function; names must be unique, add a prefix, such as "block-0/${name}"`,
    );
  const marked = taps.mark(x, name);
  taps.values.set(name, marked);
  return marked;
};

/**
 * Runs `fn`, and collects the values that `fn` records by `tap`.
 *
 * @param mark Creates a new node that returns a recorded value unchanged. The tap name refers to the result of this
 * node. Default: an identity node.
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
