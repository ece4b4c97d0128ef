import {
  allReduce,
  type Backend,
  broadcastFromRoot,
  type Communicators,
  jit,
  NdArray,
  type Tensor,
} from "@skein/tensor-core";

/**
 * Function with which ranks agree on a list of numbers. Must be called on all ranks. It returns the same list on all
 * ranks, rounded to f32: the numbers of rank 0, or sums over ranks. Ranks base decisions on this list, because their
 * own measurements differ.
 */
export type Agree = (numbers: readonly number[]) => Promise<number[]>;

/** Returns a function that sums numbers over the ranks along `axis`, rounded to f32. All ranks receive the sums. */
export const totals = (backend: Backend, communicators: Communicators, axis: string): Agree & { release(): void } =>
  acrossRanks(backend, communicators, (x) => allReduce(x, axis, "sum"));

export const agreement = (backend: Backend, communicators: Communicators, axis: string): Agree & { release(): void } =>
  acrossRanks(backend, communicators, (x) => broadcastFromRoot(x, axis));

const acrossRanks = (
  backend: Backend,
  communicators: Communicators,
  fn: (own: Tensor) => Tensor,
): Agree & { release(): void } => {
  const compiled = jit(fn, backend, { communicators });
  const agree: Agree = async (numbers) => {
    const agreed = await compiled(NdArray.from(numbers));
    const values = (await backend.download(agreed)).toNumbers();
    backend.free(agreed);
    return values;
  };
  return Object.assign(agree, { release: () => compiled.release() });
};
