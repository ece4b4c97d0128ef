import {
  ArgumentError,
  type BucketPlan,
  byteLength,
  flattenTree,
  leafPaths,
  type Tensor,
  type TensorSpec,
} from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";

/**
 * Returns the leaf paths in reverse order. If the model's tree is in forward order, this is approximately the order in
 * which the backward pass computes the gradients.
 */
const backwardOrder = (tree: unknown): string[] => leafPaths(tree).reverse();

/**
 * Returns the paths of gradients in the order in which the traced backward pass computes the gradients.
 * @example
 * ```ts
 * const order = (w: Tensor, b: Tensor, x: Tensor) => {
 *   const loss = (params: { w: Tensor; b: Tensor }) => mean(add(multiply(params.w, x), params.b));
 *   const [, gradients] = valueAndGrad(loss)({ w, b });
 *   console.log(readyOrder(gradients)); // ['b', 'w']
 *   return gradients;
 * };
 * await evaluate(order, referenceBackend())(NdArray.from([1, 2]), NdArray.from([3]), NdArray.from([1, 1]));
 * ```
 */
export const readyOrder = (gradients: unknown): string[] => {
  const { leaves } = flattenTree<Tensor>(gradients);
  const paths = leafPaths(gradients);
  return leaves
    .map((leaf, i) => ({ node: leaf.ref.node, path: paths[i]! }))
    .sort((a, b) => a.node - b.node)
    .map(({ path }) => path);
};

/**
 * Returns a plan with one bucket per tensor: each gradient is sent as soon as it is ready (wait-free backpropagation).
 *
 * @example
 * ```ts
 * const params = { w: NdArray.from([1, 2]), b: NdArray.from([3]) };
 * console.log(bucketPerTensor(params)); // [['w'], ['b']]
 * ```
 */
export const bucketPerTensor = (params: unknown, order: readonly string[] = backwardOrder(params)): BucketPlan =>
  order.map((path) => [path]);

/**
 * Fills buckets in order, with up to `bucketBytes` of dense gradient per bucket. A larger tensor gets a separate
 * bucket.
 *
 * @param params tree of values with dtype and shape.
 * @param order paths in the order in which gradients become ready. Default: last parameter first. `readyOrder` returns
 * the exact order.
 * @throws ArgumentError if the size is not positive, or the order does not match the paths of `params`.
 * @example
 * ```ts
 * const params = { a: NdArray.from([1, 2]), b: NdArray.from([3]), c: NdArray.from([4]) };
 * console.log(bucketsOfSize(params, 8)); // [['c', 'b'], ['a']]
 * ```
 */
export const bucketsOfSize = (
  params: unknown,
  bucketBytes: number,
  order: readonly string[] = backwardOrder(params),
): BucketPlan => {
  if (!(bucketBytes > 0))
    throw new ArgumentError(
      `bucketsOfSize: a bucket size of ${bucketBytes} bytes is not positive; use a positive size`,
    );
  const specs = specsByPath(params);
  const buckets: string[][] = [];
  let filled = 0;
  for (const path of order) {
    const bytes = byteLength(specs.get(path) ?? unknownPath(path, specs));
    if (buckets.length === 0 || filled + bytes > bucketBytes) {
      buckets.push([]);
      filled = 0;
    }
    buckets.at(-1)!.push(path);
    filled += bytes;
  }
  checkBucketPlan(buckets, params);
  return buckets;
};

const unknownPath = (path: string, specs: ReadonlyMap<string, TensorSpec>): never => {
  throw new ArgumentError(
    `the bucket plan names "${path}", but the tensors are [${[...specs.keys()].join(", ")}]; build the plan from these parameters`,
  );
};

/** Returns the dtype and shape of each parameter, by path, such as `layers.0.weight`. */
export const specsByPath = (params: unknown): ReadonlyMap<string, TensorSpec> => leavesByPath(params);

/**
 * Throws ArgumentError unless the bucket plan names every tensor of `params` exactly once and contains no empty bucket.
 */
export const checkBucketPlan = (plan: BucketPlan, params: unknown): void => {
  const specs = specsByPath(params);
  const seen = new Set<string>();
  plan.forEach((bucket, i) => {
    if (bucket.length === 0)
      throw new ArgumentError(`bucket ${i} of ${plan.length} is empty; leave it out of the plan`);
    for (const path of bucket) {
      if (!specs.has(path)) unknownPath(path, specs);
      if (seen.has(path))
        throw new ArgumentError(`the bucket plan names "${path}" twice; each tensor belongs to one bucket`);
      seen.add(path);
    }
  });
  const missing = [...specs.keys()].filter((path) => !seen.has(path));
  if (missing.length > 0)
    throw new ArgumentError(`the bucket plan leaves out [${missing.join(", ")}]; build the plan from these parameters`);
};
