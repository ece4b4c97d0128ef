import { type Backend, broadcastFromRoot, type Communicators, jit, NdArray, type Tensor } from "@skein/tensor-core";

/**
 * Numbers of rank 0, on all ranks alike, rounded to f32: for decisions that rest on measurements, which differ by rank.
 */
export type Agree = (numbers: readonly number[]) => Promise<number[]>;

export const agreement = (
  backend: Backend,
  communicators: Communicators,
  axis: string,
): Agree & { release(): void } => {
  const broadcast = jit((x: Tensor) => broadcastFromRoot(x, axis), backend, { communicators });
  const agree: Agree = async (numbers) => {
    const agreed = await broadcast(NdArray.from(numbers));
    const values = (await backend.download(agreed)).toNumbers();
    backend.free(agreed);
    return values;
  };
  return Object.assign(agree, { release: () => broadcast.release() });
};
