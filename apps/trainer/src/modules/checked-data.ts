import { type Augmentation, type Records, shareRecords } from "@skein/data";
import { excerpt } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";
import type { DataSet } from "./task.ts";

const predictions: readonly unknown[] = [
  "classes",
  "bytes",
  "tokens",
  "values",
] satisfies readonly DataSet["predicts"][];

const requireRecords = (records: unknown, what: string): Records => {
  const { count, fields } = (records ?? {}) as Partial<Records>;
  if (!Number.isInteger(count) || typeof fields !== "object" || fields === null)
    throw new ModuleError(
      `${what} is ${excerpt(records)}, but must be records; make them with arrayRecords({ inputs, labels }) of @skein/data`,
    );
  const missing = ["inputs", "labels"].filter((name) => fields[name] === undefined);
  if (missing.length > 0)
    throw new ModuleError(
      `${what} has the fields ${Object.keys(fields).join(", ")}, but no ${missing.join(" and ")}; name the fields inputs and labels`,
    );
  if (count === 0) throw new ModuleError(`${what} has 0 samples; give at least one`);
  return records as Records;
};

const layoutOf = ({ fields }: Records): string =>
  Object.entries(fields)
    .map(([name, { dtype, shape }]) => `${name} ${dtype}[${shape.join(", ")}]`)
    .sort()
    .join(", ");

/** How somebody else's images change from epoch to epoch. @throws ModuleError for what changes none. */
const requireAugmentation = (augmentation: unknown, { fields }: Records, what: string): Augmentation => {
  const { cropPadding, flip } = (augmentation ?? {}) as Partial<Augmentation>;
  if (!Number.isInteger(cropPadding) || cropPadding! < 0 || typeof flip !== "boolean")
    throw new ModuleError(
      `${what}: augmentation is ${excerpt(augmentation)}, but must be { cropPadding, flip }: pixels that images may be moved by, from 0, and whether they are mirrored`,
    );
  const { dtype, shape } = fields["inputs"]!;
  if (dtype !== "u8" || shape.length !== 3)
    throw new ModuleError(
      `${what}: augmentation changes images of bytes [height, width, channels], but the inputs are ${dtype}[${shape.join(", ")}]; leave it out`,
    );
  const least = Math.min(shape[0]!, shape[1]!);
  if (cropPadding! >= least)
    throw new ModuleError(
      `${what}: augmentation.cropPadding: images of ${shape[0]}×${shape[1]} cannot be moved by ${cropPadding} pixels, little would be left of them; use less than ${least}`,
    );
  return { cropPadding: cropPadding!, flip };
};

/**
 * A data set that somebody else made, in shared memory.
 *
 * @param what names it in errors.
 * @throws ModuleError for what is none.
 */
export const checkedData = (data: unknown, what: string): DataSet<Records> => {
  const { train, test, predicts, classes, augmentation, remarks } = (data ?? {}) as Partial<DataSet>;
  if (!predictions.includes(predicts))
    throw new ModuleError(
      `${what}: predicts is ${excerpt(predicts)}, but must be one of ${predictions.join(", ")}; it says what a label is`,
    );
  if (predicts === "values" ? classes !== undefined : !Number.isInteger(classes) || classes! < 1)
    throw new ModuleError(
      predicts === "values"
        ? `${what}: classes is ${excerpt(classes)}, but values have none; leave it out`
        : `${what}: classes is ${excerpt(classes)}, but must be how many ${predicts} there are to choose from; give a whole number`,
    );
  const [learned, heldOut] = [requireRecords(train, `${what}: train`), requireRecords(test, `${what}: test`)];
  if (layoutOf(learned) !== layoutOf(heldOut))
    throw new ModuleError(
      `${what}: samples of train are ${layoutOf(learned)}, those of test ${layoutOf(heldOut)}; both must have the same fields`,
    );
  if (remarks !== undefined && !(Array.isArray(remarks) && remarks.every((line) => typeof line === "string")))
    throw new ModuleError(`${what}: remarks is ${excerpt(remarks)}, but must be a list of lines; change it`);
  return {
    train: shareRecords(learned),
    test: shareRecords(heldOut),
    predicts: predicts!,
    classes,
    ...(augmentation !== undefined && { augmentation: requireAugmentation(augmentation, learned, what) }),
    ...(remarks !== undefined && { remarks }),
  };
};
