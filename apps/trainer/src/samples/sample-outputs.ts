import type { Samples } from "@skein/data";
import { readBatch } from "@skein/data/node";
import { type Backend, type DeviceArray, jit, type Tensor } from "@skein/tensor-core";
import type { Learnt } from "../rank/evaluate.ts";
import { compileNextLogits } from "../generate/next-logits.ts";
import { sampleToken } from "../generate/sample-token.ts";
import type { TextModel } from "../generate/text-model.ts";
import type { DataSet } from "../modules/task.ts";

/** What a model makes of one held-out sample. */
export type SampleOutput =
  | {
      readonly kind: "classes";
      /** Of the sample among the held-out ones. */
      readonly index: number;
      readonly label: number;
      readonly predicted: number;
      /** Of the predicted class, 0 to 1. */
      readonly probability: number;
    }
  | {
      readonly kind: "values";
      readonly index: number;
      /** The first ones of the sample. */
      readonly label: readonly number[];
      readonly predicted: readonly number[];
    }
  | {
      readonly kind: "text";
      readonly index: number;
      /** Tokens: what the model is given, how the sample goes on, and how the model does. */
      readonly prompt: readonly number[];
      readonly truth: readonly number[];
      readonly continuation: readonly number[];
    };

/** A model, and whether it goes on from keys and values: see `TextModel`. */
type ShownModel = Pick<TextModel, "model" | "goesOn">;

/** Numbers of one sample that are told. */
const mostValues = 8;
/** Tokens that a text is continued by. */
const mostTokens = 64;

export interface SampleOutputs {
  /** What the model makes of the samples now. */
  show(learnt: Learnt): Promise<SampleOutput[]>;
  release(): void;
}

/** So many samples, evenly over all of them: neighbours in a file are often of one class. */
export const spreadSamples = (count: number, wanted: number): number[] => {
  const most = Math.min(count, wanted);
  return Array.from({ length: most }, (_, i) => Math.floor(((i + 0.5) * count) / most));
};

/** The most probable class, and its probability. */
const mostProbable = (logits: readonly number[]): { readonly predicted: number; readonly probability: number } => {
  const greatest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - greatest), 0);
  return { predicted: logits.indexOf(greatest), probability: 1 / total };
};

/**
 * Compile what shows the outputs of a model for held-out samples. It reads the state and changes nothing of it.
 *
 * Cost: a forward pass for all samples; for text, one for each of up to 64 tokens of each sample, over one position
 * where the model goes on.
 *
 * @param numSamples that are shown, evenly over all. @param share of them that this rank shows: every P-th.
 */
export const makeSampleOutputs = async (
  { model, goesOn }: ShownModel,
  backend: Backend,
  { test, predicts }: Pick<DataSet, "test" | "predicts">,
  numSamples: number,
  share: { readonly rank: number; readonly ranks: number } = { rank: 0, ranks: 1 },
): Promise<SampleOutputs> => {
  const indices = spreadSamples(test.count, numSamples).filter((_, i) => i % share.ranks === share.rank);
  if (indices.length === 0) return { show: () => Promise.resolve([]), release: () => undefined };
  if (predicts === "bytes" || predicts === "tokens") return textOutputs({ model, goesOn }, backend, test, indices);
  const compiled = jit(
    (params: unknown, state: unknown, inputs: Tensor) => model.apply(params, state, inputs, { train: false })[0],
    backend,
    { name: "outputs of samples" },
  ) as unknown as ((...args: unknown[]) => Promise<DeviceArray>) & { release(): void };
  const { inputs, labels } = await readBatch(test, indices);
  const wanted = labels!.toNumbers();
  const perLabel = wanted.length / indices.length;
  const show = async ({ params, model: state }: Learnt): Promise<SampleOutput[]> => {
    const array = await compiled(params, state, inputs);
    const numbers = (await backend.download(array)).toNumbers();
    backend.free(array);
    const each = numbers.length / indices.length;
    return indices.map((index, i): SampleOutput => {
      const outputs = numbers.slice(i * each, (i + 1) * each);
      const label = wanted.slice(i * perLabel, (i + 1) * perLabel);
      return predicts === "classes"
        ? { kind: "classes", index, label: label[0]!, ...mostProbable(outputs) }
        : { kind: "values", index, label: label.slice(0, mostValues), predicted: outputs.slice(0, mostValues) };
    });
  };
  return { show, release: () => compiled.release() };
};

/** The first half of each sample, continued by its most probable tokens. */
const textOutputs = (
  model: ShownModel,
  backend: Backend,
  texts: Samples,
  indices: readonly number[],
): SampleOutputs => {
  const [length] = texts.fields["inputs"]!.shape as [number];
  const given = Math.max(1, Math.floor(length / 2));
  const added = Math.min(mostTokens, Math.max(1, length - given));
  const logits = compileNextLogits(model, length, backend);
  const show = async ({ params, model: state }: Learnt): Promise<SampleOutput[]> => {
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
