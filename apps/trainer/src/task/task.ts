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
import { ModuleError } from "../errors.ts";

/**
 * What a label is: one of so many classes, a byte of text, a token of another vocabulary, or numbers. It decides in
 * which unit results are told. `own` where there are no labels, or the model's loss alone knows what they are: then a
 * run is judged by the loss, and by figures of the model's own.
 */
export type Prediction = "classes" | "bytes" | "tokens" | "values" | "own";

/** Samples to learn from and samples to judge by. */
export interface DataSet<Of extends Samples = Samples> {
  /**
   * Any tree of arrays, see `arrayRecords`. Models of ours take a field `inputs` and a field `labels`; one of yours is
   * given the tree as it is.
   */
  readonly train: Of;
  readonly test: Of;
  readonly predicts: Prediction;
  /** How many classes, bytes or tokens there are to choose from: the width of the logits. None for others. */
  readonly classes?: number | undefined;
  /** Names of the classes, by number. Absent: classes have numbers only. */
  readonly classNames?: readonly string[] | undefined;
  /** How training changes the images of `train`, the field `inputs`, from epoch to epoch. */
  readonly augmentation?: Augmentation | undefined;
  /** Whether samples may hold NaN and infinities, because the model handles them. Default: false. */
  readonly allowNonFinite?: boolean | undefined;
  /** What people should know of the samples, a line each. */
  readonly remarks?: readonly string[] | undefined;
}

/** The same, where samples to learn from may come by and be gone. */
export interface TrainingData extends Omit<DataSet, "train"> {
  readonly train: TrainingSamples;
}

/** A batch as a model is given it, with `mask`, bool [B], where rows only fill it up. */
export type BatchTree = NamedTree<Tensor>;

/** A model of whatever batches, as all but its own code sees it. */
export type AnyModel = Model<unknown, unknown, unknown>;

/** The same as a user's code makes it: it is judged by sums of its own, and gives any tree of tensors. */
export type OwnModel = Model<unknown, unknown, unknown, Sums, unknown>;

/** What a model is to learn, without the samples. */
export interface Task extends Pick<DataSet, "predicts" | "classes"> {
  /** The tree of specs of one sample. */
  readonly sample: NamedTree<TensorSpec>;
  /** The same by paths, such as `query.tokens`. */
  readonly leaves: Leaves<TensorSpec>;
  /**
   * What is at a path.
   *
   * @throws ModuleError where no tensor is.
   */
  spec(path: string): TensorSpec;
  /** `spec("inputs")`. */
  readonly inputs: TensorSpec;
  /** `spec("labels")`. */
  readonly labels: TensorSpec;
}

const specOf = ({ dtype, shape }: TensorSpec): TensorSpec => ({ dtype, shape: [...shape] });

/** For people: which fields samples have. */
export const layoutOf = ({ fields }: { readonly fields: Leaves<TensorSpec> }): string =>
  Object.entries(fields)
    .map(([path, spec]) => `${path} ${formatSpec(spec)}`)
    .sort()
    .join(", ");

/** What a model learns from such data: what a factory of `defineModel` is given. */
export const taskOf = ({ train, predicts, classes }: Pick<TrainingData, "train" | "predicts" | "classes">): Task => {
  const specs = Object.fromEntries(Object.entries(train.fields).map(([path, spec]) => [path, specOf(spec)]));
  const spec = (path: string): TensorSpec => {
    const found = Object.hasOwn(specs, path) ? specs[path] : undefined;
    if (found === undefined)
      throw new ModuleError(
        `samples have no tensor "${path}": they are ${layoutOf(train)}; take one of these, or give the data that field`,
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

/** Whether samples are what models of ours take: inputs and labels, a tensor each. */
export const isLabelled = ({ leaves }: Pick<Task, "leaves">): boolean => "inputs" in leaves && "labels" in leaves;

/** Specs of a batch of so many samples. */
export const batchSpecs = ({ fields }: { readonly fields: Leaves<TensorSpec> }, count: number): NamedTree<TensorSpec> =>
  batchTree(
    Object.fromEntries(
      Object.entries(fields).map(([path, { dtype, shape }]) => [path, { dtype, shape: [count, ...shape] }]),
    ),
  );
