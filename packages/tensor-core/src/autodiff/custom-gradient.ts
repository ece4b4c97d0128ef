import { ArgumentError, ShapeError } from "../errors.ts";
import { emitWithGradient } from "../graph/emit.ts";
import { stopGradient } from "../functions/elementwise.ts";
import { Tensor } from "../graph/tensor.ts";
import { formatSpec, sameSpec } from "../shape.ts";
import { flattenTree, leafPaths, leavesAlong, type TreeStructure, unflattenTree } from "../tree.ts";

/**
 * Tree of gradients with the structure of `T`. `undefined` for a leaf, or for the whole tree, means that no gradient
 * flows to that leaf or tree. The length of lists is checked at run time.
 */
export type GradientOf<T> =
  | undefined
  | (T extends Tensor
      ? T
      : T extends readonly (infer Item)[]
        ? readonly GradientOf<Item>[]
        : T extends object
          ? { readonly [K in keyof T]: GradientOf<T[K]> }
          : T);

/** Arguments of a custom gradient rule. */
export interface CustomGradientContext<Args, Result> {
  readonly args: Args;
  readonly value: Result;
  /** Cotangents of the results: a tree with the structure of `value`; zeros for unused results. */
  readonly cotangents: Result;
}

/** Flattened tree of values. Builds trees of the same structure with other tensors. */
class TensorsOf<T> {
  readonly tensors: readonly Tensor[];
  private readonly leaves: readonly unknown[];
  private readonly structure: TreeStructure;

  constructor(tree: T) {
    const { leaves, structure } = flattenTree<unknown>(tree);
    this.leaves = leaves;
    this.structure = structure;
    this.tensors = leaves.filter((leaf) => leaf instanceof Tensor);
  }

  /** Returns the tree with the given tensors; leaves that are not tensors are unchanged. */
  with(tensors: readonly Tensor[]): T {
    let next = 0;
    return unflattenTree<T>(
      this.structure,
      this.leaves.map((leaf) => (leaf instanceof Tensor ? tensors[next++] : leaf)),
    );
  }

  get allTensors(): boolean {
    return this.tensors.length === this.leaves.length;
  }
}

const describeTree = (value: unknown): string =>
  value instanceof Tensor ? "a tensor" : `[${leafPaths(value).join(", ")}]`;

/**
 * Checks the gradient that a rule returned for one argument. Returns one gradient per tensor in the argument; undefined
 * if no gradient flows to the tensor.
 */
const gradientsFor = (arg: unknown, gradient: unknown, position: number): (Tensor | undefined)[] => {
  const { leaves, structure } = flattenTree<unknown>(arg);
  const given = gradient === undefined ? leaves.map(() => undefined) : leavesAlong<unknown>(structure, gradient);
  if (given === undefined)
    throw new ArgumentError(
      `customGradient: the rule returned ${describeTree(gradient)} for argument ${position} of ${describeTree(arg)}; return a tree of the same structure, or undefined if no gradient flows`,
    );
  const paths = leafPaths(arg);
  return leaves.flatMap((leaf, i): (Tensor | undefined)[] => {
    if (!(leaf instanceof Tensor)) return [];
    const own = given[i];
    if (own !== undefined && (!(own instanceof Tensor) || !sameSpec(own, leaf)))
      throw new ShapeError(
        "customGradient",
        `the rule returned ${own instanceof Tensor ? formatSpec(own) : `${String(own)} instead of a tensor`} for argument ${position}${paths[i] === "" ? "" : ` (${paths[i]})`} of ${formatSpec(leaf)}; a gradient must have the dtype and shape of its argument: use sumTo(), broadcastTo() or cast()`,
      );
    return [own];
  });
};

/**
 * Defines a custom derivative of a function, for straight-through estimators, clipped gradients, or numerically better
 * formulas.
 *
 * @param fn Traced function that takes and returns trees of tensors. Arguments that are not tensors are passed to `fn`
 * unchanged.
 * @param rule Traced gradient rule. Returns a list with one gradient per argument: a tree of the same structure, dtypes
 * and shapes, or `undefined` if no gradient flows. A computation that is part of both `fn` and `rule` runs only once.
 * @returns A function like `fn`. Second derivatives differentiate the operators in `rule`.
 * @throws ArgumentError or ShapeError, when the gradient is traced, if `rule` returns a wrong tree or shape, and if
 * `fn` reads a differentiated tensor that is not one of its arguments.
 *
 * Cost: none; the graph has no additional nodes.
 * @example
 * ```ts
 * const roundStraightThrough = customGradient((x: Tensor) => round(x), ({ cotangents }) => [cotangents]);
 * const gradient = (x: Tensor) => valueAndGrad((y: Tensor) => sum(roundStraightThrough(y)))(x)[1];
 * console.log((await evaluate(gradient, referenceBackend())(NdArray.from([1.4, 2.6]))).toNumbers()); // [1, 1]
 * ```
 */
export const customGradient = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  rule: (context: CustomGradientContext<Args, Result>) => { readonly [K in keyof Args]: GradientOf<Args[K]> },
): ((...args: Args) => Result) => {
  if (typeof fn !== "function" || typeof rule !== "function")
    throw new ArgumentError("customGradient takes two functions: the function itself, and its gradient rule");
  return (...args) => {
    const given = new TensorsOf(args);
    const computed = new TensorsOf(fn(...given.with(given.tensors.map(stopGradient))));
    if (!computed.allTensors)
      throw new ArgumentError(
        "customGradient: the function must return a tree of tensors only; wrap numbers in constant()",
      );
    const numValues = computed.tensors.length;
    const results = emitWithGradient(given.tensors, computed.tensors, ({ inputs, outputs, cotangents }) => {
      const own = given.with(inputs.slice(0, given.tensors.length));
      const gradients: unknown = rule({
        args: own,
        value: computed.with(outputs),
        cotangents: computed.with(cotangents),
      });
      if (!Array.isArray(gradients) || gradients.length !== args.length)
        throw new ArgumentError(
          `customGradient: the rule returned ${Array.isArray(gradients) ? `a list of ${gradients.length}` : gradients === undefined ? "nothing" : describeTree(gradients)} for ${args.length} arguments; return a list with one entry per argument, such as [gradient]`,
        );
      return [
        ...own.flatMap((arg, i) => gradientsFor(arg, gradients[i], i)),
        ...Array.from({ length: numValues }, () => undefined),
      ];
    });
    return computed.with(results);
  };
};
