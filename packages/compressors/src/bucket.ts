import { elementCount, type Shape, slice, reshape, type Tensor, type TensorSpec } from "@skein/tensor-core";

/** Path and shape of one tensor in a bucket. */
export interface BucketTensor {
  /** Path in the format of `leafPaths`: "layers.0.weight". */
  readonly path: string;
  readonly shape: Shape;
}

/**
 * A group of tensors that are sent together as one flat f32 vector `[n]`, in which the tensors are concatenated in
 * order.
 */
export interface Bucket extends TensorSpec {
  readonly dtype: "f32";
  readonly tensors: readonly BucketTensor[];
}

/**
 * Returns the bucket of the given tensors, in the given order: f32 `[n]`, n the sum of their element counts.
 *
 * @example
 * ```ts
 * const bucket = bucketOf([{ path: "w", shape: [2, 3] }, { path: "b", shape: [3] }]);
 * console.log(lengthOf(bucket)); // 9
 * ```
 */
export const bucketOf = (tensors: readonly BucketTensor[]): Bucket => ({
  dtype: "f32",
  shape: [tensors.reduce((count, { shape }) => count + elementCount(shape), 0)],
  tensors,
});

/** Returns the number of elements of a bucket. */
export const lengthOf = ({ shape }: TensorSpec): number => elementCount(shape);

/** Splits the flat vector of a bucket into tensors with their original shapes. */
export const unflattenBucket = (flat: Tensor, { tensors }: Bucket): Tensor[] => {
  let end = 0;
  return tensors.map(({ shape }) => {
    const begin = end;
    end += elementCount(shape);
    return reshape(slice(flat, [begin], [end]), shape);
  });
};
