import { ConfigError, describeError, ModuleError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { type OwnOptimizer, sliceOfWhole, sliceShape } from "@skein/step/node";
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

/** Whether ranks shard parameters or the optimizer state. */
export const sharesOut = ({ zero, ranks, mesh }: Pick<Job, "zero" | "ranks" | "mesh">): boolean =>
  (zero === 1 && ranks > 1) || mesh.expert * mesh.tensor > 1;

/**
 * Requires that a user-defined optimizer declares that it works element by element, because sharding needs this
 * property.
 * @throws ConfigError.
 */
export const requireDeclared = ({ elementwise }: OwnOptimizer, { zero, mesh }: Pick<Job, "zero" | "mesh">): void => {
  if (elementwise === true) return;
  const cure =
    "set elementwise: true next to its init and update, or in defineOptimizer(), if the update of an entry depends only on that entry";
  const why = "your optimizer may use whole parameters";
  const axis = mesh.expert > 1 ? "expert" : "tensor";
  throw new ConfigError([
    zero === 1
      ? `zero: ranks would share the optimizer's state, but ${why}; ${cure}, or use zero: 0`
      : `optimizer: ${why}, which ranks along mesh.${axis} share; ${cure}, or use mesh: {${axis}: 1}`,
  ]);
};

/** Maximum size of each dimension of a parameter in the check. */
const maxTried = 3;
/** Number of simulated ranks that shard a parameter in the check. */
const numParts = 2;
/** Scales of the gradients in the two steps of the check. */
const scales = [1e-3, 1] as const;
/**
 * Factor by which values outside of the tested slice are scaled. The factor is so large that a norm or mean that
 * includes these values exceeds any clipping bound.
 */
const otherScale = 1e6;

const valuesLike = ({ dtype, shape }: TensorSpec, valueAt: (i: number) => number): NdArray =>
  NdArray.from(
    Array.from({ length: elementCount(shape) }, (_, i) => valueAt(i)),
    shape,
    dtype,
  );

/**
 * Returns a function that runs two steps of an optimizer in the reference interpreter, and returns the updates of both
 * steps.
 */
const twoSteps = (rule: OwnOptimizer) =>
  evaluate((params: unknown, first: unknown, second: unknown) => {
    const [update, state] = rule.update(first, rule.init(params), { params });
    const moved = zipTrees((own: Tensor, by: Tensor) => add(own, by), params, update);
    return [update, rule.update(second, state, { params: moved })[0]];
  }, referenceBackend()) as unknown as (...trees: readonly unknown[]) => Promise<readonly unknown[]>;

/**
 * Tests whether an optimizer works element by element, if it declares this property. Runs two steps on small
 * parameters, which have the same paths and numbers of dimensions as `params`, and two steps on a slice of these
 * parameters. In both cases, the entries of the slice must get the same updates, even though values outside of the
 * slice are large. The test detects updates that depend on norms, means, matrices or shapes, even if the dependency
 * exists only above a bound. Dependencies that exist only for rare values may be missed.
 * Cost: the reference interpreter on at most 3ᵈ entries of each parameter with d dimensions.
 * @param params tree of specs. @param what name of the optimizer in errors.
 * @throws ModuleError that names a parameter and both numbers.
 */
export const requireElementwise = async (rule: OwnOptimizer, params: unknown, what: string): Promise<void> => {
  const small = mapTree(params, ({ dtype, shape }: TensorSpec) => ({
    dtype,
    shape: shape.map((size) => Math.min(size, maxTried)),
  }));
  const paths = leafPaths(small);
  const run = twoSteps(rule);
  for (let part = 0; part < numParts; part++) {
    /** Returns test parameters or gradients. Values outside of the tested slice are multiplied by `elsewhere`. */
    const tree = (phase: number, scale: number, elsewhere: number): unknown =>
      mapTree(small, (spec: TensorSpec, path) => {
        const each = sliceShape(spec.shape, numParts)?.[0] ?? Infinity;
        const isOwn = (i: number): boolean => Math.floor(i / each) === part || each === Infinity;
        const turn = phase + paths.indexOf(path);
        return valuesLike(spec, (i) => scale * (isOwn(i) ? 1 : elsewhere) * Math.sin(turn + 1.7 * i));
      });
    const trees = [tree(0, 1, 1), ...scales.map((scale, i) => tree(10 * (i + 1), scale, otherScale))];
    const whole = await run(...trees);
    const slices = trees.map((own) =>
      mapTree(own, (array: NdArray) =>
        sliceShape(array.shape, numParts) === undefined ? array : sliceOfWhole(array, part, numParts),
      ),
    );
    const own = await run(...slices).catch((error: unknown) => {
      throw new ModuleError(
        `${what} declares elementwise: true, but fails if ranks have slices of parameters with the same number of dimensions: ${describeError(error).message}; remove elementwise`,
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
          const expected = full[begin + i];
          if (expected === undefined || Object.is(value, expected) || value === expected) return;
          throw new ModuleError(
            `${what} declares elementwise: true, but in a trial the update of entry ${begin + i} of ${path} was ${expected} with the whole parameter, and ${value} with half of it; the optimizer depends on more than the entry, such as a norm, a mean or the shape: remove elementwise`,
          );
        });
      }
  }
};

/**
 * Requires that each tensor in the state of a user-defined optimizer belongs to a parameter. Checkpoints need this
 * property if ranks shard parameters or state.
 *
 * @param optimizer specs of the optimizer state on a rank. @param params specs of the parameters on a rank.
 * @throws ModuleError that names state without a parameter.
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
        `${what} keeps ${path.replace(/^optimizer\./, "")} ${formatSpec(spec)}, which is not in a tree with the structure of the parameters, so its parameter is unknown when ranks share parameters or state; keep it in such a tree, as mapTree(params, …) returns, or in scalars`,
      );
  }
};
