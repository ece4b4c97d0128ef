import {
  add,
  elementCount,
  evaluate,
  leafPaths,
  mapTree,
  type Mesh,
  NdArray,
  referenceBackend,
  type Tensor,
  type TensorSpec,
  zipTrees,
} from "@skein/tensor-core";
import { formatSpec, leavesByPath } from "@skein/tensor-core/backend";
import { ConfigError, describeError, ModuleError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { sliceOfWhole, sliceShape } from "../building/sharded-optimizer.ts";
import type { OwnOptimizer } from "./factories.ts";

/** Whether ranks have parts of parameters, or of the optimizer's state. */
export const sharesOut = ({ zero, ranks, mesh }: Pick<Job, "zero" | "ranks" | "mesh">): boolean =>
  (zero === 1 && ranks > 1) || mesh.expert * mesh.tensor > 1;

/** Require that an optimizer of a user's says that it works on parts. @throws ConfigError. */
export const requireDeclared = ({ elementwise }: OwnOptimizer, { zero, mesh }: Pick<Job, "zero" | "mesh">): void => {
  if (elementwise === true) return;
  const cure =
    "say elementwise: true beside its init and update, or in defineOptimizer(), if the update of an entry depends on that entry alone";
  const why = "an optimizer of yours may look at parameters as wholes";
  const axis = mesh.expert > 1 ? "expert" : "tensor";
  throw new ConfigError([
    zero === 1
      ? `zero: ranks are to share the optimizer's state out, but ${why}; ${cure}, or use zero: 0`
      : `optimizer: ${why}, which ranks along mesh.${axis} share out; ${cure}, or use mesh: {${axis}: 1}`,
  ]);
};

/** Of each dimension of a parameter that is tried, so many entries at most. */
const mostTried = 3;
/** Ranks that share it out in the trial. */
const numParts = 2;
/** Sizes of the gradients of one step and the next. */
const scales = [1e-3, 1] as const;
/** What entries that another rank has are multiplied by: a norm or a mean with them is above any bound. */
const farAway = 1e6;

const valuesLike = ({ dtype, shape }: TensorSpec, valueAt: (i: number) => number): NdArray =>
  NdArray.from(
    Array.from({ length: elementCount(shape) }, (_, i) => valueAt(i)),
    shape,
    dtype,
  );

/** Updates of two steps. */
const twoSteps = (rule: OwnOptimizer) =>
  evaluate((params: unknown, first: unknown, second: unknown) => {
    const [update, state] = rule.update(first, rule.init(params), { params });
    const moved = zipTrees((own: Tensor, by: Tensor) => add(own, by), params, update);
    return [update, rule.update(second, state, { params: moved })[0]];
  }, referenceBackend()) as unknown as (...trees: readonly unknown[]) => Promise<readonly unknown[]>;

/**
 * Try whether an optimizer that says so works by element: two steps of it on small parameters with these paths and
 * numbers of dimensions give, entry for entry, what they give where two ranks have slices, whatever the other one has.
 * What looks at norms, means, matrices or shapes is found, also above a bound; what does so for rare values may not
 * be.
 *
 * Cost: the reference interpreter on at most 3ᵈ entries of each parameter.
 *
 * @param params specs, a tree. @param what names it in errors.
 * @throws ModuleError that names a parameter and both numbers.
 */
export const requireElementwise = async (rule: OwnOptimizer, params: unknown, what: string): Promise<void> => {
  const small = mapTree(params, ({ dtype, shape }: TensorSpec) => ({
    dtype,
    shape: shape.map((size) => Math.min(size, mostTried)),
  }));
  const paths = leafPaths(small);
  const run = twoSteps(rule);
  for (let part = 0; part < numParts; part++) {
    /** Parameters or gradients, far larger where another part begins than in this one. */
    const tree = (phase: number, scale: number, elsewhere: number): unknown =>
      mapTree(small, (spec: TensorSpec, path) => {
        const each = sliceShape(spec.shape, numParts)?.[0] ?? Infinity;
        const isOwn = (i: number): boolean => Math.floor(i / each) === part || each === Infinity;
        const turn = phase + paths.indexOf(path);
        return valuesLike(spec, (i) => scale * (isOwn(i) ? 1 : elsewhere) * Math.sin(turn + 1.7 * i));
      });
    const trees = [tree(0, 1, 1), ...scales.map((scale, i) => tree(10 * (i + 1), scale, farAway))];
    const whole = await run(...trees);
    const slices = trees.map((own) =>
      mapTree(own, (array: NdArray) =>
        sliceShape(array.shape, numParts) === undefined ? array : sliceOfWhole(array, part, numParts),
      ),
    );
    const own = await run(...slices).catch((error: unknown) => {
      throw new ModuleError(
        `${what} says elementwise: true, but fails where ranks have slices of parameters, in as many dimensions: ${describeError(error).message}; leave elementwise out`,
        { cause: error },
      );
    });
    for (const [step, updates] of own.entries())
      for (const [path, array] of leavesByPath<NdArray>(updates)) {
        const full = leavesByPath<NdArray>(whole[step]).get(path)!.toNumbers();
        const begin = sliceShape(leavesByPath<TensorSpec>(small).get(path)!.shape, numParts)
          ? part * array.data.length
          : 0;
        array.toNumbers().forEach((value, i) => {
          const wanted = full[begin + i];
          if (wanted === undefined || Object.is(value, wanted) || value === wanted) return;
          throw new ModuleError(
            `${what} says elementwise: true, but in a trial the update of entry ${begin + i} of ${path} was ${wanted} where it saw all of the parameter, and ${value} where it saw half of it; it looks at more than the entry, such as a norm, a mean or the shape: leave elementwise out`,
          );
        });
      }
  }
};

/**
 * Require that all that an optimizer of a user's keeps can be told by parameter, as checkpoints must where ranks have
 * parts.
 *
 * @param optimizer specs of its state, as a rank has it. @param params specs of the parameters that a rank has.
 * @throws ModuleError that names what has no parameter.
 */
export const requireStateByParameter = (
  { optimizer, params }: { readonly optimizer: unknown; readonly params: unknown },
  {
    zero,
    mesh,
    axisOf,
  }: { readonly zero: Job["zero"]; readonly mesh: Mesh; readonly axisOf: (path: string) => string },
  what: string,
): void => {
  const known = [...leavesByPath<TensorSpec>(params)].sort(([a], [b]) => b.length - a.length);
  for (const [path, spec] of leavesByPath<TensorSpec>({ optimizer })) {
    if (spec.shape.length === 0) continue;
    const [name, { shape } = { shape: [] }] = known.find(([param]) => path.endsWith(`.${param}`)) ?? [""];
    const due = zero === 1 ? (sliceShape(shape, mesh[axisOf(name)] ?? 1) ?? shape) : shape;
    if (name === "" || due.join() !== spec.shape.join())
      throw new ModuleError(
        `${what} keeps ${path.replace(/^optimizer\./, "")} ${formatSpec(spec)}, which is in no tree like the parameters, so that it cannot be told which parameter's part it is where ranks share parameters or state out; keep it in such trees, as mapTree(params, …) makes, or in scalars`,
      );
  }
};
