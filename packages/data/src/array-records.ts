import { bytesPerElement, elementCount, formatShape, NdArray } from "@skein/tensor-core";
import { excerpt, leavesByPath } from "@skein/tensor-core/backend";
import { batchTree, type NamedTree } from "./batch-tree.ts";
import { DataError } from "./errors.ts";
import { byteRecords, type Records } from "./records.ts";

/**
 * Makes samples that share the memory of arrays, so later writes to an array also change batches. The first dimension
 * of each array is the number of samples. Other dimensions and the dtype are arbitrary. Arrays form a tree of objects
 * and lists, with names at its root. The path of an array, such as `query.tokens`, is the name of its field in the
 * records.
 *
 * @throws DataError if arrays have different numbers of samples, or if there are no arrays.
 * @example const pairs = arrayRecords({ query: { tokens, lengths }, document: pixels });
 * @example
 * ```ts
 * const inputs = NdArray.from([1, 2, 3, 4, 5, 6], [3, 2]);
 * const records = arrayRecords({ inputs, labels: NdArray.from([0, 1, 0], [3], "i32") });
 * console.log(records.count, gatherBatch(records, [2, 0])["inputs"]!.toNumbers()); // 3 [5, 6, 1, 2]
 * ```
 */
export const arrayRecords = (arrays: NamedTree<NdArray>): Records => {
  const entries = [...leavesByPath<unknown>(arrays)];
  for (const [path, array] of entries)
    if (!(array instanceof NdArray))
      throw new DataError(
        `field "${path}" is ${excerpt(array)}, but must be an NdArray; make one, such as NdArray.from(numbers, shape, "f32")`,
      );
  const [first, ...others] = entries as [string, NdArray][];
  if (first === undefined)
    throw new DataError("arrayRecords was given no arrays; give one for each field, such as inputs and labels");
  for (const [name, { shape }] of [first, ...others]) {
    if (shape.length === 0 || shape[0] !== first[1].shape[0])
      throw new DataError(
        `field "${name}" is ${formatShape(shape)}, field "${first[0]}" ${formatShape(first[1].shape)}; the first dimension counts the samples and must be the same in all`,
      );
  }
  const fields = Object.fromEntries(
    [first, ...others].map(([name, array]) => {
      const shape = array.shape.slice(1);
      const strideBytes = elementCount(shape) * bytesPerElement[array.dtype];
      return [name, { bytes: array.bytes(), offsetBytes: 0, strideBytes, dtype: array.dtype, shape }];
    }),
  );
  batchTree(fields); // throws unless the paths form one tree
  return byteRecords(first[1].shape[0]!, fields);
};
