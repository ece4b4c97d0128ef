import { ConfigError } from "@skein/cli/node";
import {
  type Field,
  gatherBatch,
  isEncoded,
  isFileWindows,
  isStreamed,
  byteRecords,
  type TrainingSamples,
} from "@skein/data";
import type { Job, PretrainedJob } from "@skein/job/node";
import type { TrainingData } from "../task/task.ts";

/** Maximum number of class names that an error lists. */
const maxListed = 8;

const listed = (names: readonly string[]): string =>
  names.length <= maxListed ? names.join(", ") : `${names.slice(0, maxListed).join(", ")}, … (${names.length} in all)`;

/** Returns the class names of data; undefined if the names are only the class numbers. */
export const namesOf = ({ classNames }: Pick<TrainingData, "classNames">): readonly string[] | undefined =>
  classNames?.every((name, number) => name === String(number)) ? undefined : classNames;

/**
 * Returns the class names of a checkpoint, indexed by class number; undefined if its config.json has no names, or only
 * placeholders such as LABEL_0.
 */
const checkpointNames = ({ config }: Pick<PretrainedJob, "config">): readonly string[] | undefined => {
  const names = config?.["id2label"];
  if (typeof names !== "object" || names === null) return undefined;
  const byNumber = Object.entries(names).map(([number, name]) => [Number(number), String(name)] as const);
  const list = byNumber.toSorted(([a], [b]) => a - b).map(([, name]) => name);
  return list.every((name, number) => name === `LABEL_${number}` || name === String(number)) ? undefined : list;
};

/**
 * Returns a label field, i32, in which class c is renumbered to `numbers[c]`. Labels that are not a class, such as an
 * ignored label, are kept.
 */
const renumberedField = (field: Field, count: number, numbers: readonly number[]): Field => {
  const all = Array.from({ length: count }, (_, i) => i);
  const labels = gatherBatch(byteRecords(count, { labels: field }), all)["labels"]!.toNumbers();
  const values = new Int32Array(new SharedArrayBuffer(4 * labels.length));
  values.set(labels.map((label) => numbers[label] ?? label));
  const strideBytes = (4 * labels.length) / count;
  return { bytes: new Uint8Array(values.buffer), offsetBytes: 0, strideBytes, dtype: "i32", shape: field.shape };
};

/**
 * Returns samples with renumbered classes.
 * @param numbers new number of each class. @param names class names by new number.
 */
const renumbered = <Some extends TrainingSamples>(
  samples: Some,
  numbers: readonly number[],
  names: readonly string[],
): Some => {
  const known: TrainingSamples = samples;
  if (isStreamed(known)) {
    const { stream } = known;
    return stream.samples.of === "texts"
      ? samples
      : { ...samples, stream: { ...stream, samples: { ...stream.samples, classes: names } } };
  }
  if (isFileWindows(known)) return samples;
  const { count } = known;
  if (isEncoded(known))
    return {
      ...samples,
      stored: { ...known.stored, labels: renumberedField(known.stored["labels"]!, count, numbers) },
      fields: { ...known.fields, labels: { dtype: "i32", shape: [] } },
    };
  const { fields } = known;
  return { ...samples, fields: { ...fields, labels: renumberedField(fields["labels"]!, count, numbers) } };
};

/**
 * Returns the data with the class numbers of the job's checkpoint. Classes are matched by name, so that a trained head
 * keeps its meaning. If there is no trained head, or the data or the checkpoint has no class names, returns the data
 * unchanged.
 *
 * @throws ConfigError if the checkpoint does not name a class of the data.
 */
export const withCheckpointClasses = (data: TrainingData, { model }: Pick<Job, "model">): TrainingData => {
  if (model.kind !== "pretrained" || model.head !== undefined || model.weights === "none") return data;
  const [names, theirs] = [namesOf(data), checkpointNames(model)];
  if (data.predicts !== "classes" || names === undefined || theirs === undefined) return data;
  if (names.length !== theirs.length) return data; // the number of scores is checked when the model is built
  if (names.every((name, number) => name === theirs[number])) return data;
  const foreign = names.filter((name) => !theirs.includes(name));
  if (foreign.length > 0)
    throw new ConfigError([
      `model.folder: the checkpoint has the classes ${listed(theirs)}, but the data has ${listed(foreign)}; train a new head with head: new, or rename the classes of the data to the checkpoint's names`,
    ]);
  const numbers = names.map((name) => theirs.indexOf(name));
  return {
    ...data,
    train: renumbered(data.train, numbers, theirs),
    test: renumbered(data.test, numbers, theirs),
    classNames: theirs,
    remarks: [...(data.remarks ?? []), "classes are numbered as in the checkpoint's config.json"],
  };
};
