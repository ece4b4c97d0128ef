import { describe } from "../describe.ts";
import { isFloat } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { full, identity } from "../functions/elementwise.ts";
import { requireOperands } from "../graph/emit.ts";
import { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatShape } from "../shape.ts";
import { flattenTree, leafPaths, leavesAlong, mapTree, unflattenTree } from "../tree.ts";
import { pullBack } from "./pull-back.ts";
import { gatherTaps, type TapOptions, type Taps } from "./tap.ts";

/**
 * Creates the function that propagates a cotangent of `value` back to the primals and to the values recorded by `tap`.
 */
const createPullback = <P, Result>(
  value: Result,
  primals: P,
  taps: ReadonlyMap<string, Tensor>,
): ((cotangents: Result) => { readonly grads: P; readonly taps: Taps }) => {
  const { leaves: outputs, structure } = flattenTree<Tensor>(value);
  requireOperands("the result of the differentiated function", outputs);
  const flat = flattenTree<Tensor>(primals);
  return (cotangents) => {
    const leaves = leavesAlong<Tensor>(structure, cotangents);
    if (leaves === undefined)
      throw new ArgumentError(
        `pullback: got cotangents [${leafPaths(cotangents).join(", ")}] for results [${leafPaths(value).join(", ")}]; both trees must have the same structure`,
      );
    const gradients = pullBack(outputs, leaves, flat.leaves, [...taps.values()]);
    const tapGradients = gradients.slice(flat.leaves.length);
    return {
      grads: unflattenTree<P>(flat.structure, gradients.slice(0, flat.leaves.length)),
      taps: Object.fromEntries(
        [...taps].map(([name, tapped], i) => [name, { value: tapped, cotangent: tapGradients[i]! }]),
      ),
    };
  };
};

/**
 * Copies the primals through new identity nodes. Tensors that a differentiated function closes over are then constants,
 * even if they were computed from the same primals.
 */
const freshPrimals = <P>(primals: P): P => {
  requireOperands("vjp", flattenTree(primals).leaves);
  return mapTree(primals, (leaf: Tensor) => identity(leaf)) as P;
};

/**
 * Evaluates `fn(primals)` and returns its vector-Jacobian product.
 *
 * @returns `value`, and `pullback`, which maps a cotangent tree to a gradient tree with the structure of `primals`,
 * inside the same trace. `pullback` throws ShapeError or ArgumentError if the cotangents do not have the tree
 * structure, dtypes and shapes of `value`.
 * @example
 * ```ts
 * const pull = (x: Tensor) => {
 *   const { value, pullback } = vjp(square, x);
 *   return pullback(onesLike(value));
 * };
 * console.log((await evaluate(pull, referenceBackend())(NdArray.from([1, 2]))).toNumbers()); // [2, 4]
 * ```
 */
export const vjp = <P, Result>(
  fn: (primals: P) => Result,
  primals: P,
  ...rest: readonly never[]
): { readonly value: Result; readonly pullback: (cotangents: Result) => P } => {
  requireFunction("vjp", fn);
  if (rest.length > 0)
    throw new ArgumentError(
      `vjp: ${1 + rest.length} primals were given; pass one, which may be a list or a plain object: vjp(([a, b]) => …, [a, b])`,
    );
  const own = freshPrimals(primals);
  const value = fn(own);
  const pullback = createPullback(value, own, new Map());
  return { value, pullback: (cotangents) => pullback(cotangents).grads };
};

const requireFunction = (caller: string, fn: unknown): void => {
  if (typeof fn !== "function")
    throw new ArgumentError(
      `${caller}: got ${describe(fn)} instead of a function; pass the function itself, and its arguments to the returned function: ${caller === "vjp" ? "vjp(fn, primals)" : `${caller}(fn)(params)`}`,
    );
};

/** Throws unless a loss is a floating-point scalar. @param caller Name of the calling function, for the message. */
export const scalarLoss = (caller: string, loss: Tensor): Tensor => {
  if (!(loss instanceof Tensor))
    throw new ArgumentError(
      `${caller} needs a function that returns its loss, a Tensor, but it returned ${loss === undefined ? "nothing" : describe(loss)}; return the loss`,
    );
  if (loss.shape.length !== 0)
    throw new ArgumentError(
      `${caller} needs a scalar loss, got shape ${formatShape(loss.shape)}; reduce it with mean() or sum()`,
    );
  if (!isFloat(loss.dtype))
    throw new ArgumentError(
      `${caller} needs a loss of real numbers, got dtype ${loss.dtype}, through which no gradient flows; cast() its operands`,
    );
  return loss;
};

/**
 * Runs a function of parameters. Returns its loss and auxiliary results, the gradients, and the values recorded by
 * `tap`.
 */
const withGradients = <P, Aux>(
  fn: (params: P) => readonly [Tensor, Aux],
  params: P,
  tapped: boolean,
): { readonly value: Tensor; readonly aux: Aux; readonly grads: P; readonly taps: Taps } => {
  const own = freshPrimals(params);
  const run = (): readonly [Tensor, Aux] => fn(own);
  const { result, taps } = tapped ? gatherTaps(run) : { result: run(), taps: new Map<string, Tensor>() };
  const [loss, aux] = [scalarLoss("valueAndGrad", result[0]), result[1]];
  return { value: loss, aux, ...createPullback(loss, own, taps)(full([], 1, loss.dtype)) };
};

const shouldReturnTaps = (caller: string, options: TapOptions | undefined): boolean => {
  if (options === undefined) return false;
  return checkOptions(`${caller}(fn)`, options, { taps: true } as const).taps === true;
};

/**
 * Signatures of `valueAndGrad`. The first argument of the function is the tree of parameters; gradients are a tree of
 * the same structure.
 */
export interface ValueAndGrad {
  <P, Rest extends readonly unknown[]>(
    fn: (params: P, ...rest: Rest) => Tensor,
  ): (params: P, ...rest: Rest) => [Tensor, P];
  <P, Rest extends readonly unknown[]>(
    fn: (params: P, ...rest: Rest) => Tensor,
    options: TapOptions,
  ): (params: P, ...rest: Rest) => { readonly value: Tensor; readonly grads: P; readonly taps: Taps };
}

/**
 * Turns a scalar function into a function that also returns its gradient with respect to the first argument.
 *
 * @param options With `taps: true`, the function returns `{ value, grads, taps }`, where `taps` has the values named by
 * `tap` in `fn`, and their cotangents.
 * @example const { taps } = valueAndGrad(loss, { taps: true })(params, batch); taps["hidden"].cotangent
 * @example
 * ```ts
 * const loss = ({ w }: { w: Tensor }) => sum(square(w));
 * const step = (w: Tensor) => valueAndGrad(loss)({ w });
 * const [value, gradients] = await evaluate(step, referenceBackend())(NdArray.from([1, 2]));
 * console.log(value.item(), gradients.w.toNumbers()); // 5 [2, 4]
 * ```
 */
export const valueAndGrad: ValueAndGrad = (<P, Rest extends readonly unknown[]>(
  fn: (params: P, ...rest: Rest) => Tensor,
  options?: TapOptions,
) => {
  requireFunction("valueAndGrad", fn);
  const tapped = shouldReturnTaps("valueAndGrad", options);
  return (params: P, ...rest: Rest) => {
    const { value, grads, taps } = withGradients((own: P) => [fn(own, ...rest), undefined] as const, params, tapped);
    return tapped ? { value, grads, taps } : [value, grads];
  };
}) as ValueAndGrad;

/** Signatures of `valueAndGradWithAux`. */
export interface ValueAndGradWithAux {
  <P, Aux, Rest extends readonly unknown[]>(
    fn: (params: P, ...rest: Rest) => readonly [Tensor, Aux, ...unknown[]],
  ): (params: P, ...rest: Rest) => [Tensor, Aux, P];
  <P, Aux, Rest extends readonly unknown[]>(
    fn: (params: P, ...rest: Rest) => readonly [Tensor, Aux, ...unknown[]],
    options: TapOptions,
  ): (
    params: P,
    ...rest: Rest
  ) => { readonly value: Tensor; readonly aux: Aux; readonly grads: P; readonly taps: Taps };
}

/**
 * Like `valueAndGrad`, for a function that returns its loss and a tree of auxiliary results through which no gradient
 * flows. Further elements of the returned list are ignored.
 *
 * @example
 * ```ts
 * const loss = ({ w }: { w: Tensor }) => [sum(square(w)), { largest: reduceMax(w) }] as const;
 * const step = (w: Tensor) => valueAndGradWithAux(loss)({ w });
 * const [value, { largest }, gradients] = await evaluate(step, referenceBackend())(NdArray.from([1, 2]));
 * console.log(value.item(), largest.item(), gradients.w.toNumbers()); // 5 2 [2, 4]
 * ```
 */
export const valueAndGradWithAux: ValueAndGradWithAux = (<P, Aux, Rest extends readonly unknown[]>(
  fn: (params: P, ...rest: Rest) => readonly [Tensor, Aux],
  options?: TapOptions,
) => {
  requireFunction("valueAndGradWithAux", fn);
  const tapped = shouldReturnTaps("valueAndGradWithAux", options);
  return (params: P, ...rest: Rest) => {
    const checked = (own: P): readonly [Tensor, Aux] => {
      const result = fn(own, ...rest);
      if (!Array.isArray(result))
        throw new ArgumentError(
          `valueAndGradWithAux needs a function that returns [loss, aux], but it returned ${describe(result)}`,
        );
      return result as readonly [Tensor, Aux];
    };
    const { value, aux, grads, taps } = withGradients(checked, params, tapped);
    return tapped ? { value, aux, grads, taps } : [value, aux, grads];
  };
}) as ValueAndGradWithAux;
