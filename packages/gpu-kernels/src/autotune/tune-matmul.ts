import type { KernelChoices, MatmulRequest } from "../kernel.ts";
import { staticChoice } from "../kernels/matmul/choose.ts";
import type { WebGpuBackend } from "../webgpu-backend.ts";
import type { ChoiceStore } from "./choice-store.ts";
import { choicesFrom, type MatmulModel, trainMatmulModel } from "./matmul-model.ts";
import { measureMatmul, type MeasureOptions, type RejectedVariant } from "./measure-matmul.ts";

/** Options of `tuneMatmul`: products to measure, and the store for the resulting model. */
export interface TuneOptions extends MeasureOptions {
  /** Store from which the adapter's model is loaded, and to which a new model is saved. */
  readonly store?: ChoiceStore;
  /** Whether to measure even if the store has a model of the adapter. Default: false. */
  readonly again?: boolean;
}

/** Result of tuning matrix products on an adapter. */
export interface TunedMatmul {
  readonly model: MatmulModel;
  /** Kernel settings to pass to the next backend on this adapter. */
  readonly choices: KernelChoices;
  /**
   * Variants that gave wrong results or did not compile; please report them. Empty if the model came from the store.
   */
  readonly rejected: readonly RejectedVariant[];
}

/**
 * Finds the fastest matmul variant for each size on this device: measures the variants, trains a model, and stores the
 * model.
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
