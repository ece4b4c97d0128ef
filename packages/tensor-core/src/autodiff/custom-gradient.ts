import { ArgumentError, ShapeError } from "../errors.ts";
import { emitWithGradient } from "../graph/emit.ts";
import { stopGradient } from "../functions/elementwise.ts";
import { Tensor } from "../graph/tensor.ts";
import { formatSpec, sameSpec } from "../shape.ts";
import { flattenTree, leafPaths, leavesAlong, type TreeStructure, unflattenTree } from "../tree.ts";

/**
 * A tree like `T`; `undefined` in place of a leaf, or of all of it, where no gradient flows. Lists have as many entries
 * as those of `T`, which is checked when it runs.
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

/** What a gradient rule of one's own is given: arguments, result, and what is carried back to the result. */
export interface CustomGradientContext<Args, Result> {
  readonly args: Args;
  readonly value: Result;
  /** A tree like `value`; zeros where a result was not used. */
  readonly cotangents: Result;
}

/** A tree taken apart: its tensors, and everything to put others in their places. */
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

  /** The tree with other tensors in it; what is no tensor stays. */
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

const show = (value: unknown): string => (value instanceof Tensor ? "a tensor" : `[${leafPaths(value).join(", ")}]`);

/** What the rule says flows to the tensors of one argument, checked. */
const gradientsFor = (arg: unknown, gradient: unknown, position: number): (Tensor | undefined)[] => {
  const { leaves, structure } = flattenTree<unknown>(arg);
  const given = gradient === undefined ? leaves.map(() => undefined) : leavesAlong<unknown>(structure, gradient);
  if (given === undefined)
    throw new ArgumentError(
      `customGradient: the rule gave ${show(gradient)} for argument ${position} of ${show(arg)}; it gives a tree of the same structure, or undefined where nothing flows`,
    );
  const paths = leafPaths(arg);
  return leaves.flatMap((leaf, i): (Tensor | undefined)[] => {
    if (!(leaf instanceof Tensor)) return [];
    const own = given[i];
    if (own !== undefined && (!(own instanceof Tensor) || !sameSpec(own, leaf)))
      throw new ShapeError(
        "customGradient",
        `the rule gave ${own instanceof Tensor ? formatSpec(own) : `no tensor but ${String(own)}`} for argument ${position}${paths[i] === "" ? "" : ` (${paths[i]})`} of ${formatSpec(leaf)}; a gradient has the dtype and shape of its argument, sumTo(), broadcastTo() or cast() it`,
      );
    return [own];
  });
};

/**
 * Give a function a derivative of one's own: straight-through estimators, clipped gradients, formulas that lose fewer
 * digits.
 *
 * @param fn a traced function of trees of tensors; what is no tensor among its arguments is passed on as it is. Returns
 * a tree of tensors.
 * @param rule traced too: from arguments, value and cotangents to a list with one entry per argument, a tree like it of
 * the same dtypes and shapes. `undefined` stands where nothing flows. What it computes of `args` and `value` again as
 * `fn` did is computed once.
 * @returns a function like `fn`. It may be differentiated again: what the rule computes has the derivatives of its
 * operators.
 * @throws ArgumentError or ShapeError, when the gradient is traced, for a rule that returns other trees or shapes, and
 * where `fn` reads a tensor that is differentiated and none of its arguments.
 *
 * Cost: none; no node of the graph remains of it.
 * @example const roundStraightThrough = customGradient((x: Tensor) => round(x), ({ cotangents }) => [cotangents]);
 */
export const customGradient = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  rule: (context: CustomGradientContext<Args, Result>) => { readonly [K in keyof Args]: GradientOf<Args[K]> },
): ((...args: Args) => Result) => {
  if (typeof fn !== "function" || typeof rule !== "function")
    throw new ArgumentError("customGradient takes two functions: one that computes, and the rule of its gradient");
  return (...args) => {
    const given = new TensorsOf(args);
    const computed = new TensorsOf(fn(...given.with(given.tensors.map(stopGradient))));
    if (!computed.allTensors)
      throw new ArgumentError(
        "customGradient: the function returned something else than a tree of tensors; wrap numbers in constant()",
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
          `customGradient: the rule gave ${Array.isArray(gradients) ? `a list of ${gradients.length}` : gradients === undefined ? "nothing" : show(gradients)} for ${args.length} arguments; it returns a list with one entry for each, such as [gradient]`,
        );
      return [
        ...own.flatMap((arg, i) => gradientsFor(arg, gradients[i], i)),
        ...Array.from({ length: numValues }, () => undefined),
      ];
    });
    return computed.with(results);
  };
};
