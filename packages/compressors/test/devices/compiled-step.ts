import { type Backend, type Communicators, evaluate, flattenTree, NdArray } from "@skein/tensor-core";
import type { Aggregator, Bucket } from "../../src/index.ts";
import type { Stepper } from "../stepper.ts";

/** Result of an aggregation step on one rank. */
export interface RankStep {
  readonly mean: NdArray;
  readonly sent: NdArray;
  /** Leaves of the state, in flattening order. */
  readonly state: readonly NdArray[];
}

/** Step of a `Stepper` for one rank, compiled for a backend. */
export interface CompiledStep {
  run(gradient: NdArray, state: readonly NdArray[], seed: number, number: number): Promise<RankStep>;
  release(): void;
}

export const compiledStep = ({ graph }: Stepper, backend: Backend, communicators?: Communicators): CompiledStep => {
  const executable = backend.compile(graph);
  return {
    run: async (gradient, state, seed, number) => {
      const key = NdArray.from([seed, number], [2], "u32");
      const inputs = [gradient, ...state, key, NdArray.from([number], [], "u32")].map((array) => backend.upload(array));
      const outputs = await executable.run(inputs, communicators);
      const [mean, sent, ...next] = await Promise.all(outputs.map((array) => backend.download(array)));
      for (const array of [...inputs, ...outputs]) backend.free(array);
      return { mean: mean!, sent: sent!, state: next };
    },
    release: () => executable.release(),
  };
};

/** Returns the state before the first step, computed on a backend. */
export const firstState = async (aggregator: Aggregator, bucket: Bucket, backend: Backend): Promise<NdArray[]> =>
  flattenTree<NdArray>(await evaluate(() => aggregator.init(bucket), backend)()).leaves;
