import { describe } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { inPhase } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { flattenTree, leafPaths, unflattenTree } from "../tree.ts";
import type { GradientTransformation, TensorTree } from "./transformation.ts";

/**
 * Function that returns the label of a parameter: the name of the transformation that applies to the parameter.
 * Receives the parameter's path in the tree and its spec.
 */
export type PartitionLabel = (path: string, param: Tensor) => string;

/** Parameters of one group, by path. */
type Part = Readonly<Record<string, Tensor>>;

const rightCall =
  'write partition((path, param) => (param.rank < 2 ? "vectors" : "matrices"), { matrices: momentum(…), vectors: adam(…) })';

const requireParts = (label: unknown, parts: unknown): void => {
  if (typeof label !== "function")
    throw new ArgumentError(`partition: its label is ${describe(label)}, but it must be a function; ${rightCall}`);
  if (typeof parts !== "object" || parts === null || Array.isArray(parts))
    throw new ArgumentError(
      `partition: its parts are ${describe(parts)}, but they must be a record by name; ${rightCall}`,
    );
  for (const [name, part] of Object.entries(parts as Readonly<Record<string, Partial<GradientTransformation<never>>>>))
    if (typeof part?.init !== "function" || typeof part.update !== "function")
      throw new ArgumentError(
        `partition: its part ${name} is ${describe(part)}, but it must be a transformation; ${rightCall}`,
      );
};

/**
 * Applies a different transformation to each group of parameters, for example Muon to matrices and Adam to all other
 * parameters. `label` selects the group. Each transformation receives only the parameters of its group, as a flat
 * record by path. The state is a record of the states of all transformations.
 *
 * @throws ArgumentError if a label has no transformation.
 * @example
 * ```ts
 * const optimizer = partition((_, param) => (param.rank < 2 ? "vectors" : "matrices"), {
 *   vectors: sgd({ learningRate: 0.1 }),
 *   matrices: adam({ learningRate: 3e-4 }),
 * });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const next = await evaluate(step, referenceBackend())(NdArray.from([1, 2]), NdArray.from([1, -1]));
 * console.log(next.toNumbers().map((value) => value.toFixed(3))); // ['0.900', '2.100']
 * ```
 */
export const partition = <States extends Readonly<Record<string, unknown>>>(
  label: PartitionLabel,
  parts: { readonly [name in keyof States]: GradientTransformation<States[name]> },
): GradientTransformation<States> => {
  requireParts(label, parts);
  const entries = Object.entries(parts as Readonly<Record<string, GradientTransformation<unknown>>>);
  const split = (labels: readonly string[], paths: readonly string[], tree: unknown): ReadonlyMap<string, Part> => {
    const { leaves } = flattenTree<Tensor>(tree);
    return new Map(
      entries.map(([name]) => [
        name,
        Object.fromEntries(paths.flatMap((path, i) => (labels[i] === name ? [[path, leaves[i]!]] : []))),
      ]),
    );
  };
  const labelsOf = (params: unknown): { readonly paths: string[]; readonly labels: string[] } => {
    const paths = leafPaths(params);
    const labels = flattenTree<Tensor>(params).leaves.map((param, i) => label(paths[i]!, param));
    const wrong = labels.findIndex((name) => !Object.hasOwn(parts, name));
    if (wrong >= 0)
      throw new ArgumentError(
        `partition: the label of ${paths[wrong]} is ${describe(labels[wrong])}, but the parts are ${entries.map(([name]) => name).join(", ")}; return one of them`,
      );
    return { paths, labels };
  };
  return {
    init: (params) => {
      const { paths, labels } = labelsOf(params);
      const own = split(labels, paths, params);
      return Object.fromEntries(entries.map(([name, part]) => [name, part.init(own.get(name)!)])) as States;
    },
    ...(entries.some(([, { observe }]) => observe !== undefined) && {
      observe: (state: States, statistics: TensorTree, options) =>
        Object.fromEntries(
          entries.map(([name, part]) => [name, part.observe?.(state[name], statistics, options) ?? state[name]]),
        ) as States,
    }),
    update: (updates, state, context) =>
      inPhase("update", () => {
        const { paths, labels } = labelsOf(context.params);
        const [own, params] = [split(labels, paths, updates), split(labels, paths, context.params)];
        const results = entries.map(
          ([name, part]) =>
            [name, part.update(own.get(name)!, state[name], { ...context, params: params.get(name)! })] as const,
        );
        const after: Part = Object.fromEntries(results.flatMap(([, [each]]) => Object.entries(each as Part)));
        return [
          unflattenTree(
            flattenTree(updates).structure,
            paths.map((path) => after[path]),
          ),
          Object.fromEntries(results.map(([name, [, next]]) => [name, next])) as States,
        ];
      }),
  };
};
