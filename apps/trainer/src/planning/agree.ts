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
 * Numbers of rank 0, on all ranks alike, rounded to f32: for decisions that rest on measurements, which differ by rank.
 */
export type Agree = (numbers: readonly number[]) => Promise<number[]>;

/** Numbers of all ranks added up, on all ranks alike, rounded to f32. */
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
