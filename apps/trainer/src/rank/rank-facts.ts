import type { Facts } from "@skein/collectives";
import type { CpuBackend } from "@skein/cpu-kernels";
import type { WebGpuBackend } from "@skein/gpu-kernels";
import { decoderOf } from "@skein/data";
import { type Backend, concat, evaluate, exp, matmul, NdArray, reshape, tanh, type Tensor } from "@skein/tensor-core";
import { digestOf } from "@skein/tensor-core/backend";
import type { RankInput } from "./messages.ts";

/**
 * Returns a test matrix whose products and sums need rounding, so that results differ between arithmetic with and
 * without fused multiply-add.
 */
const operand = (rows: number, columns: number, seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: rows * columns }, (_, i) => Math.sin(seed + 12.9898 * i)),
    [rows, columns],
  );

/**
 * Returns a digest of the bits of exp(A·B) and tanh(A·B) for small matrices A and B. Equal digests indicate equal
 * arithmetic.
 */
const arithmeticOf = async (backend: Backend): Promise<string> => {
  const probe = (a: Tensor, b: Tensor): Tensor => {
    const product = matmul(a, b);
    return concat([exp(product), tanh(product)].map((x) => reshape(x, [-1])));
  };
  const bits = await evaluate(probe as (a: Tensor, b: Tensor) => Tensor, backend)(operand(7, 65, 1), operand(65, 9, 2));
  return digestOf([...bits.bytes()].join());
};

/**
 * Returns the properties that must be equal on all ranks for bitwise equal results: backend, precision, device and
 * arithmetic. Two hosts may run the same build of the kernels and still round differently, so the arithmetic of the CPU
 * is tested.
 */
export const rankFacts = async (
  { job, backend: name, data, dataDigest }: Pick<RankInput, "job" | "backend" | "data" | "dataDigest">,
  backend: Backend,
): Promise<Facts> => {
  const decoder = decoderOf(data.train);
  const facts = {
    backend: name,
    precision: JSON.stringify(job.precision),
    ...(dataDigest !== undefined && { "samples (a digest of the data set)": dataDigest }),
    // no digest covers the pixels produced by a decoder
    ...(decoder !== undefined && { "image decoder": decoder }),
  };
  if (name === "cpu")
    return {
      ...facts,
      "BLAS (skein-train blas build)": (backend as CpuBackend).blas ?? "none",
      "arithmetic (a digest of a small product)": await arithmeticOf(backend),
    };
  const { adapter, f16, subgroups, subgroupMatrices } = (backend as WebGpuBackend).facts;
  const has = (feature: boolean): string => (feature ? "with" : "without");
  return {
    ...facts,
    "WebGPU device": `${adapter} ${has(f16)} f16, ${has(subgroups)} subgroups, ${has(subgroupMatrices.length > 0)} subgroup matrices`,
  };
};
