import { parentPort, workerData } from "node:worker_threads";
import { createCpuBackend } from "@skein/cpu-kernels";
import {
  jit,
  multiply,
  NdArray,
  reduceMeanToRoot,
  reduceToRoot,
  square,
  sum,
  type Tensor,
  valueAndGrad,
} from "@skein/tensor-core";
import { joinWorld, type WorldConnection } from "../src/node.ts";

// Thread of one rank: compiles graphs that reduce to a root and differentiate through the reduce, and posts the
// results.

export const worldSize = 4;

export interface ReduceCase {
  readonly n: number;
  readonly root: number;
  /**
   * Values of the elements: small multiples of 1/4, whose sums are exact, or numbers whose sums depend on the order.
   */
  readonly values: "exact" | "rough";
}

export interface ReduceRankData {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
  readonly cases: readonly ReduceCase[];
}

/** Results of each case, or the error message. */
export type ReduceAnswer = { readonly results: readonly (readonly Float32Array[])[] } | { readonly error: string };

export const operandOf = ({ n, values }: ReduceCase, rank: number): NdArray =>
  NdArray.from(
    Float32Array.from({ length: n }, (_, i) =>
      values === "exact" ? ((i * 7 + rank * 5) % 13) / 4 : Math.sin(i * 0.37 + 100 * rank) * 10 ** ((i + rank) % 5),
    ),
    [n],
  );

/**
 * Returns a function with three results: the sum of 2x on the root, a loss of the mean on the root, and the gradient of
 * this loss. The backward pass broadcasts the gradient to all ranks.
 */
export const reducesTo =
  (root: number): ((x: Tensor) => Tensor[]) =>
  (x) => {
    const total = reduceToRoot(multiply(x, 2), "data", root, { priority: 2 });
    const [loss, gradient] = valueAndGrad((own: Tensor) => sum(square(reduceMeanToRoot(own, "data", root))))(x);
    return [total, loss, gradient as Tensor];
  };

const run = async ({ connection, module, cases }: ReduceRankData): Promise<Float32Array[][]> => {
  const communicators = { data: joinWorld(connection) };
  const backend = await createCpuBackend({ memory: connection.memory, module });
  const results: Float32Array[][] = [];
  for (const one of cases) {
    const compiled = jit(reducesTo(one.root), backend, { communicators });
    const outputs = await compiled(operandOf(one, connection.rank));
    results.push(
      await Promise.all(outputs.map(async (output) => Float32Array.from((await backend.download(output)).toNumbers()))),
    );
    for (const output of outputs) backend.free(output);
    compiled.release();
  }
  return results;
};

if (parentPort !== null)
  run(workerData as ReduceRankData).then(
    (results) => parentPort!.postMessage({ results } satisfies ReduceAnswer),
    (error: unknown) => parentPort!.postMessage({ error: (error as Error).message } satisfies ReduceAnswer),
  );
