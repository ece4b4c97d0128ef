import type { Batch, Leaves, Samples } from "@skein/data";
import { readBatch } from "@skein/data/node";
import type { Excerpt, SampleOutput } from "@skein/run-files/node";
import { type DataSet, type EvaluatedState, forwardPass, namedResults, type SampleKind } from "@skein/step/node";
import { type Backend, cast, type DeviceArray, jit, NdArray, type Tensor } from "@skein/tensor-core";
import { compileNextLogits } from "../generate/next-logits.ts";
import { sampleToken } from "../generate/sample-token.ts";
import type { TextModel } from "../generate/text-model.ts";

/** A model, and whether it can generate text with cached keys and values, see `TextModel`. */
type ShownModel = Pick<TextModel, "model" | "usesKeyValueCache">;

/** Maximum number of displayed values per tensor. */
const maxValues = 8;
/** Maximum number of displayed tensors per sample, and per output of the model. */
const maxTensors = 64;
/** Maximum number of tokens in a generated continuation. */
const maxTokens = 64;

export interface SampleOutputs {
  /** Computes the model's outputs for the samples. */
  show(evaluated: EvaluatedState): Promise<SampleOutput[]>;
  release(): void;
}

/**
 * Returns up to `wanted` sample indices that are evenly spread over `count` samples, because neighboring samples in a
 * file often have the same class.
 */
export const spreadSamples = (count: number, wanted: number): number[] => {
  const most = Math.min(count, wanted);
  return Array.from({ length: most }, (_, i) => Math.floor(((i + 0.5) * count) / most));
};

/** Returns the most probable class, and its probability. */
const mostProbable = (logits: readonly number[]): { readonly predicted: number; readonly probability: number } => {
  const greatest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - greatest), 0);
  return { predicted: logits.indexOf(greatest), probability: 1 / total };
};

/**
 * Returns the first values of a tensor.
 * @param array Tensor with a batch dimension of size 1.
 */
const excerptOf = ({ dtype, shape, data }: NdArray): Excerpt => {
  const first = data.subarray(0, maxValues);
  return { dtype, shape: shape.slice(1), first: new NdArray(dtype, [first.length], first).toNumbers() };
};

const excerptsOf = (arrays: Leaves<NdArray>): Leaves<Excerpt> =>
  Object.fromEntries(
    Object.entries(arrays)
      .slice(0, maxTensors)
      .map(([path, array]) => [path, excerptOf(array)]),
  );

/** Builds the output record of a sample from the model's results. */
const outputOf = (
  kind: Exclude<SampleKind, "text">,
  index: number,
  batch: Batch,
  made: Leaves<NdArray>,
): SampleOutput => {
  if (kind === "tree") {
    const leftOut = [batch, made].reduce((sum, tree) => sum + Math.max(0, Object.keys(tree).length - maxTensors), 0);
    return { kind, index, given: excerptsOf(batch), made: excerptsOf(made), ...(leftOut > 0 && { leftOut }) };
  }
  const [outputs] = Object.values(made);
  const labels = batch["labels"]!;
  return kind === "classes"
    ? { kind, index, label: labels.item(), ...mostProbable(outputs!.toNumbers()) }
    : { kind, index, label: excerptOf(labels).first, predicted: excerptOf(outputs!).first };
};

/**
 * Compiles a function that computes a model's outputs for held-out samples, one sample at a time. The function does not
 * change the state.
 *
 * Cost: a forward pass per sample. For text: a forward pass per generated token, with at most 64 tokens per sample. If
 * the model caches keys and values, each of these passes covers only one position.
 *
 * @param numSamples Number of samples to display, evenly spread over all held-out samples.
 * @param share Part of the displayed samples that this rank computes: every P-th sample for P ranks.
 */
export const makeSampleOutputs = async (
  { model, usesKeyValueCache }: ShownModel,
  backend: Backend,
  { test, predicts, kind }: Pick<DataSet, "test" | "predicts"> & { readonly kind: SampleKind },
  numSamples: number,
  share: { readonly rank: number; readonly ranks: number } = { rank: 0, ranks: 1 },
): Promise<SampleOutputs> => {
  const indices = spreadSamples(test.count, numSamples).filter((_, i) => i % share.ranks === share.rank);
  if (indices.length === 0) return { show: () => Promise.resolve([]), release: () => undefined };
  if (kind === "text") return textOutputs({ model, usesKeyValueCache }, backend, test, indices);
  const pass = forwardPass(model);
  const compiled = jit(
    (params: unknown, state: unknown, batch: Leaves<Tensor>) => namedResults(pass({ params, state }, batch), predicts),
    backend,
    { name: "outputs of a sample" },
  ) as unknown as ((...args: unknown[]) => Promise<Leaves<DeviceArray>>) & { release(): void };
  const samples: (readonly [index: number, batch: Batch])[] = [];
  for (const index of indices) samples.push([index, await readBatch(test, [index])]);
  const show = async ({ params, model: state }: EvaluatedState): Promise<SampleOutput[]> => {
    const results: SampleOutput[] = [];
    for (const [index, batch] of samples) {
      const made: [path: string, array: NdArray][] = [];
      for (const [path, array] of Object.entries(await compiled(params, state, batch))) {
        made.push([path, await backend.download(array)]);
        backend.free(array);
      }
      results.push(outputOf(kind, index, batch, Object.fromEntries(made)));
    }
    return results;
  };
  return { show, release: () => compiled.release() };
};

/** Continues the first half of each sample with the most likely tokens. */
const textOutputs = (
  { model, usesKeyValueCache }: ShownModel,
  backend: Backend,
  texts: Samples,
  indices: readonly number[],
): SampleOutputs => {
  const { dtype, shape } = texts.fields["inputs"]!;
  const [length] = shape as [number];
  const given = Math.max(1, Math.floor(length / 2));
  const added = Math.min(maxTokens, Math.max(1, length - given));
  const apply: typeof model.apply = (params, state, tokens, context) =>
    model.apply(params, state, cast(tokens, dtype), context);
  const logits = compileNextLogits({ model: { ...model, apply }, usesKeyValueCache }, length, backend);
  const show = async ({ params, model: state }: EvaluatedState): Promise<SampleOutput[]> => {
    const results: SampleOutput[] = [];
    const next = logits.on(params, state);
    for (const index of indices) {
      const { inputs, labels } = await readBatch(texts, [index]);
      const prompt = inputs!.toNumbers().slice(0, given);
      const truth = labels!.toNumbers().slice(given - 1, given - 1 + added);
      const continuation: number[] = [];
      while (continuation.length < added) {
        const scores = await next.of([...prompt, ...continuation]);
        continuation.push(sampleToken(scores, { temperature: 0 }, 0));
      }
      results.push({ kind: "text", index, prompt, truth, continuation });
    }
    next.release();
    return results;
  };
  return { show, release: () => logits.release() };
};
