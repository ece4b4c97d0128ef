import type { Augmentation, Samples } from "@skein/data";
import type { TensorSpec } from "@skein/tensor-core";

/**
 * What a label is: one of so many classes, a byte of text, a token of another vocabulary, or numbers. It decides in
 * which unit results are told.
 */
export type Prediction = "classes" | "bytes" | "tokens" | "values";

/** Samples to learn from and samples to judge by. */
export interface DataSet<Of extends Samples = Samples> {
  /** With a field `inputs` and a field `labels`; further fields reach the model too. */
  readonly train: Of;
  readonly test: Of;
  readonly predicts: Prediction;
  /** How many classes, bytes or tokens there are to choose from: the width of the logits. None for values. */
  readonly classes?: number | undefined;
  /** How training changes the images of `train`, the field `inputs`, from epoch to epoch. */
  readonly augmentation?: Augmentation | undefined;
  /** What people should know of the samples, a line each. */
  readonly remarks?: readonly string[] | undefined;
}

/** What a model is to learn, without the samples. */
export interface Task extends Pick<DataSet, "predicts" | "classes"> {
  /** Of one sample. */
  readonly inputs: TensorSpec;
  readonly labels: TensorSpec;
}

const specOf = ({ dtype, shape }: TensorSpec): TensorSpec => ({ dtype, shape: [...shape] });

export const taskOf = ({ train, predicts, classes }: DataSet): Task => ({
  inputs: specOf(train.fields["inputs"]!),
  labels: specOf(train.fields["labels"]!),
  predicts,
  classes,
});

/** Specs of a batch of so many samples. */
export const batchSpecs = (
  { fields }: { readonly fields: Readonly<Record<string, TensorSpec>> },
  count: number,
): { readonly [field: string]: TensorSpec } =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { dtype, shape }]) => [name, { dtype, shape: [count, ...shape] }]),
  );
