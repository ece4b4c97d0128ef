import { elementCount, type Shape, slice, reshape, type Tensor, type TensorSpec } from "@skein/tensor-core";

/** One tensor of a bucket. */
export interface BucketTensor {
  /** As in `leafPaths`: "layers.0.weight". */
  readonly path: string;
  readonly shape: Shape;
}

/** Tensors that travel together: a flat f32 vector `[n]` in which they lie one after another. */
export interface Bucket extends TensorSpec {
  readonly dtype: "f32";
  readonly tensors: readonly BucketTensor[];
}

/** The bucket that tensors make, one behind the other: f32 `[n]`, n the sum of their elements. */
export const bucketOf = (tensors: readonly BucketTensor[]): Bucket => ({
  dtype: "f32",
  shape: [tensors.reduce((count, { shape }) => count + elementCount(shape), 0)],
  tensors,
});

/** Elements of a bucket. */
export const lengthOf = ({ shape }: TensorSpec): number => elementCount(shape);

/** Cut a flat vector of a bucket into its tensors, each in its shape. */
export const unflattenBucket = (flat: Tensor, { tensors }: Bucket): Tensor[] => {
  let end = 0;
  return tensors.map(({ shape }) => {
    const begin = end;
    end += elementCount(shape);
    return reshape(slice(flat, [begin], [end]), shape);
  });
};
