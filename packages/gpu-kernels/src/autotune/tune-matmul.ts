import type { Choices, MatmulRequest } from "../kernel.ts";
import { staticChoice } from "../kernels/matmul/choose.ts";
import type { WebGpuBackend } from "../webgpu-backend.ts";
import type { ChoiceStore } from "./choice-store.ts";
import { choicesFrom, type MatmulModel, trainMatmulModel } from "./matmul-model.ts";
import { measureMatmul, type MeasureOptions, type RejectedVariant } from "./measure-matmul.ts";

/** What is measured, and where what was learned is kept. */
export interface TuneOptions extends MeasureOptions {
  /** Where a model of this adapter may lie already, and where the new one goes. */
  readonly store?: ChoiceStore;
  /** Measure although the store has a model. Default: false. */
  readonly again?: boolean;
}

/** What was learned of matrix products on an adapter. */
export interface TunedMatmul {
  readonly model: MatmulModel;
  /** For the next backend on this adapter. */
  readonly choices: Choices;
  /** Variants that were wrong or did not compile; report them. Empty when the model came from the store. */
  readonly rejected: readonly RejectedVariant[];
}

/**
 * Learn which variant of matmul this device runs fastest for which sizes: measure, train, keep.
 *
 * @example
 * const { choices } = await tuneMatmul(backend, { store: fileChoiceStore() });
 * const tuned = await createWebGpuBackend({ gpu, choices });
 */
export const tuneMatmul = async (
  backend: WebGpuBackend,
  { store, again = false, ...measuring }: TuneOptions = {},
): Promise<TunedMatmul> => {
  const { facts } = backend;
  const known = again ? undefined : await store?.load(facts.adapter);
  if (known !== undefined) return { model: known, choices: choicesFrom(known, facts), rejected: [] };
  const { samples, rejected } = await measureMatmul(backend, measuring);
  const rule = (request: MatmulRequest): string => staticChoice({ ...request, resultDtype: request.dtype }, facts).name;
  const model = trainMatmulModel(facts.adapter, samples, { rule });
  await store?.save(model);
  return { model, choices: choicesFrom(model, facts), rejected };
};
