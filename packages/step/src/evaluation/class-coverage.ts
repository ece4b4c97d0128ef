import { isFileWindows, isStreamed, sampleClasses, type TrainingSamples } from "@skein/data";
import type { EvaluatedOn } from "@skein/run-files/node";
import type { TrainingData } from "../task/task.ts";

/** Maximum number of classes that a remark lists by number. */
const maxListed = 8;

/** Returns the number of samples per class; undefined if classes are unknown before samples are read. */
const classCounts = (samples: TrainingSamples): ReadonlyMap<number, number> | undefined => {
  if (isStreamed(samples) || isFileWindows(samples)) return undefined;
  const classes = sampleClasses(samples);
  if (classes === undefined) return undefined;
  const counts = new Map<number, number>();
  for (const label of classes) if (label >= 0) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
};

const listed = (labels: readonly number[]): string => {
  const sorted = labels.toSorted((a, b) => a - b);
  const text = sorted.slice(0, maxListed).join(", ");
  return sorted.length > maxListed ? `${text}, … (${sorted.length} in all)` : text;
};

/** Returns remarks on classes that are missing in the training samples or in the evaluation samples. */
export const coverageRemarks = (
  { train, test, predicts }: Pick<TrainingData, "train" | "test" | "predicts">,
  on: EvaluatedOn,
): string[] => {
  if (predicts !== "classes" || on === "training") return [];
  const [learned, held] = [classCounts(train), classCounts(test)];
  if (learned === undefined || held === undefined) return [];
  const unlearned = [...held.keys()].filter((label) => !learned.has(label));
  const unseen = [...learned.keys()].filter((label) => !held.has(label));
  return [
    ...(unlearned.length > 0
      ? [
          `data: no training sample is of class ${listed(unlearned)}, but ${on} samples are: the model cannot learn what it is evaluated on; shuffle the data before it is split, or use more data`,
        ]
      : []),
    ...(unseen.length > 0
      ? [
          `data: no ${on} sample is of class ${listed(unseen)}, but training samples are: the metrics do not cover such samples; shuffle the data before it is split, or hold out more data`,
        ]
      : []),
  ];
};

/** Metrics of a baseline that guesses, on the evaluation samples. */
export interface Chance {
  /**
   * Fraction of samples that have the most frequent class, 0 to 1. Absent unless classes are predicted and known in
   * advance.
   */
  readonly accuracy?: number;
  /** Loss of a uniform guess, in nats. Absent unless a class, byte or token is predicted. */
  readonly loss?: number;
}

export const chanceOf = ({ test, predicts, classes }: Pick<TrainingData, "test" | "predicts" | "classes">): Chance => {
  const counts = predicts === "classes" ? classCounts(test) : undefined;
  return {
    ...(counts !== undefined && counts.size > 0 && { accuracy: Math.max(...counts.values()) / test.count }),
    ...(classes !== undefined && classes > 1 && { loss: Math.log(classes) }),
  };
};
