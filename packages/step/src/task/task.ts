import { ModuleError } from "@skein/cli/node";
import {
  type Augmentation,
  batchTree,
  type Leaves,
  type NamedTree,
  type Samples,
  type TrainingSamples,
} from "@skein/data";
import type { Model, Sums } from "@skein/models";
import type { Tensor, TensorSpec } from "@skein/tensor-core";
import { formatSpec } from "@skein/tensor-core/backend";

/**
 * Kind of label: a class, a byte of text, a token of another vocabulary, or numbers. Determines the units of reported
 * results. `own`: there are no labels, or only the model's loss interprets them; the run is then evaluated by the loss
 * and by metrics of the model.
 */
export type Prediction = "classes" | "bytes" | "tokens" | "values" | "own";

/** Training samples and held-out samples. */
export interface DataSet<Of extends Samples = Samples> {
  /**
   * Training samples: any tree of arrays, see `arrayRecords`. Built-in models need the fields `inputs` and `labels`; a
   * user-defined model receives the complete tree.
   */
  readonly train: Of;
  readonly test: Of;
  readonly predicts: Prediction;
  /** Number of classes, bytes or tokens, which is the number of logits. Absent for other kinds of labels. */
  readonly classes?: number | undefined;
  /** Class names, by class number. Absent: classes have no names. */
  readonly classNames?: readonly string[] | undefined;
  /** Random changes applied to the images of `train`, in the field `inputs`; different in each epoch. Absent: none. */
  readonly augmentation?: Augmentation | undefined;
  /** Whether samples may contain NaN and infinities, because the model handles them. Default: false. */
  readonly allowNonFinite?: boolean | undefined;
  /** Remarks for the user about the samples, one line each. */
  readonly remarks?: readonly string[] | undefined;
}

/** A data set whose training samples may be a stream. */
export interface TrainingData extends Omit<DataSet, "train"> {
  readonly train: TrainingSamples;
}

/** A batch as passed to a model. Contains `mask`, bool [B], if some rows are only padding. */
export type BatchTree = NamedTree<Tensor>;

/** A model with any type of batch. */
export type AnyModel = Model<unknown, unknown, unknown>;

/** A user-defined model, which may return any sums and any tree of tensors. */
export type OwnModel = Model<unknown, unknown, unknown, Sums, unknown>;

/**
 * Description of the data that a model is trained on: specs of a sample, kind of label, and number of classes. Contains
 * no samples.
 */
export interface Task extends Pick<DataSet, "predicts" | "classes"> {
  /** Specs of one sample, as a tree. */
  readonly sample: NamedTree<TensorSpec>;
  /** Specs of one sample by path, such as `query.tokens`. */
  readonly leaves: Leaves<TensorSpec>;
  /**
   * Returns the spec at a path.
   *
   * @throws ModuleError if there is no tensor at the path.
   */
  spec(path: string): TensorSpec;
  /** Spec of the inputs: `spec("inputs")`. */
  readonly inputs: TensorSpec;
  /** Spec of the labels: `spec("labels")`. */
  readonly labels: TensorSpec;
}

const specOf = ({ dtype, shape }: TensorSpec): TensorSpec => ({ dtype, shape: [...shape] });

/** Describes the fields of samples for messages. */
export const layoutOf = ({ fields }: { readonly fields: Leaves<TensorSpec> }): string =>
  Object.entries(fields)
    .map(([path, spec]) => `${path} ${formatSpec(spec)}`)
    .sort()
    .join(", ");

/**
 * Returns the description of a data set's samples and labels, without the samples. This is the first argument of a
 * factory of `defineModel`.
 */
export const taskOf = ({ train, predicts, classes }: Pick<TrainingData, "train" | "predicts" | "classes">): Task => {
  const specs = Object.fromEntries(Object.entries(train.fields).map(([path, spec]) => [path, specOf(spec)]));
  const spec = (path: string): TensorSpec => {
    const found = Object.hasOwn(specs, path) ? specs[path] : undefined;
    if (found === undefined)
      throw new ModuleError(
        `samples have no tensor "${path}": they have ${layoutOf(train)}; use one of these, or add the field to the data`,
      );
    return found;
  };
  return {
    predicts,
    classes,
    sample: batchTree(specs),
    leaves: specs,
    spec,
    get inputs() {
      return spec("inputs");
    },
    get labels() {
      return spec("labels");
    },
  };
};

/** Whether samples fit built-in models, which need inputs and labels of one tensor each. */
export const isLabelled = ({ leaves }: Pick<Task, "leaves">): boolean => "inputs" in leaves && "labels" in leaves;

/** Returns the specs of a batch of `count` samples. */
export const batchSpecs = ({ fields }: { readonly fields: Leaves<TensorSpec> }, count: number): NamedTree<TensorSpec> =>
  batchTree(
    Object.fromEntries(
      Object.entries(fields).map(([path, { dtype, shape }]) => [path, { dtype, shape: [count, ...shape] }]),
    ),
  );
