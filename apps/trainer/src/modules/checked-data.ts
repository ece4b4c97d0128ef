import { describeError, ModuleError } from "@skein/cli/node";
import { batchTree, byteRecords, type Records, shareRecords } from "@skein/data";
import { type DataSet, layoutOf } from "@skein/step/node";
import { type DType, dtypes } from "@skein/tensor-core";
import { excerpt, formatSpec } from "@skein/tensor-core/backend";
import { requireAugmentation } from "./checked-augmentation.ts";
import { requireFinite } from "./checked-values.ts";

const predictions: readonly unknown[] = [
  "classes",
  "bytes",
  "tokens",
  "values",
  "own",
] satisfies readonly DataSet["predicts"][];

/** Requires that a field of user-defined records has valid bytes, offset, stride, dtype and shape. */
const requireField = (field: Partial<Records["fields"][string]> | null, path: string, what: string): void => {
  const { bytes, offsetBytes, strideBytes, dtype, shape } = field ?? {};
  const isShape = Array.isArray(shape) && shape.every((size) => Number.isInteger(size) && size >= 0);
  const isLayout = [offsetBytes, strideBytes].every((number) => Number.isInteger(number) && number! >= 0);
  if (!(bytes instanceof Uint8Array) || !dtypes.includes(dtype as DType) || !isShape || !isLayout)
    throw new ModuleError(
      `${what}: its field ${path} is ${excerpt(field)}, but must be { bytes, offsetBytes, strideBytes, dtype, shape }; make records with arrayRecords() of @skein/data`,
    );
};

const requireRecords = (records: unknown, predicts: DataSet["predicts"], what: string): Records => {
  const { count, fields } = (records ?? {}) as Partial<Records>;
  if (!Number.isInteger(count) || typeof fields !== "object" || fields === null)
    throw new ModuleError(
      `${what} is ${excerpt(records)}, but must be records; make them with arrayRecords({ inputs, labels }) of @skein/data, or from another tree of arrays`,
    );
  for (const [path, field] of Object.entries(fields)) requireField(field, path, what);
  const missing = predicts === "own" ? [] : ["inputs", "labels"].filter((name) => fields[name] === undefined);
  if (missing.length > 0)
    throw new ModuleError(
      `${what} has the fields ${Object.keys(fields).join(", ")}, but no ${missing.join(" and ")}; name the fields inputs and labels, or, if your model has its own loss, set predicts: "own"`,
    );
  if (Object.keys(fields).some((path) => path === "mask" || path.startsWith("mask.")))
    throw new ModuleError(
      `${what} has a field mask, but this name is reserved for the mask of rows in an evaluation batch; use another name`,
    );
  if (count === 0) throw new ModuleError(`${what} has 0 samples; give at least one`);
  try {
    batchTree(fields);
    return byteRecords(count!, fields);
  } catch (error) {
    throw new ModuleError(`${what}: ${describeError(error).message}`, { cause: error });
  }
};

/**
 * Requires that training samples and test samples have the same tree of fields.
 * @throws ModuleError that names the first differing path.
 */
const requireSameFields = (train: Records, test: Records, what: string): void => {
  for (const path of new Set([...Object.keys(train.fields), ...Object.keys(test.fields)])) {
    const [learned, judged] = [train.fields, test.fields].map((fields) =>
      Object.hasOwn(fields, path) ? formatSpec(fields[path]!) : "nothing",
    );
    if (learned !== judged)
      throw new ModuleError(
        `${what}: at ${path} a sample of train has ${learned}, a sample of test ${judged}; both must have the same fields (train has ${layoutOf(train)})`,
      );
  }
};

/**
 * Checks a user-defined data set, and copies its records to shared memory.
 *
 * @param what name of the data set in errors.
 * @throws ModuleError if the data set is invalid.
 */
export const checkedData = (data: unknown, what: string): DataSet<Records> => {
  const { train, test, predicts, classes, augmentation, remarks, allowNonFinite, classNames } = (data ??
    {}) as Partial<DataSet>;
  if (!predictions.includes(predicts))
    throw new ModuleError(
      `${what}: predicts is ${excerpt(predicts)}, but must be one of ${predictions.join(", ")}; it is the kind of a label (own: there are no labels, or only the model's loss interprets them)`,
    );
  const hasNone = predicts === "values" || predicts === "own";
  if (hasNone ? classes !== undefined : !Number.isInteger(classes) || classes! < 1)
    throw new ModuleError(
      hasNone
        ? `${what}: classes is ${excerpt(classes)}, but predicts: ${predicts} has no classes; remove it`
        : `${what}: classes is ${excerpt(classes)}, but must be the number of ${predicts} to choose from; give a whole number`,
    );
  const isNamed = Array.isArray(classNames) && classNames.every((name) => typeof name === "string");
  if (classNames !== undefined && (!isNamed || classNames.length !== classes || new Set(classNames).size !== classes))
    throw new ModuleError(
      `${what}: classNames is ${excerpt(classNames)}, but must be a list of ${classes ?? 0} different texts, one per class; correct it, or remove it`,
    );
  const learned = requireRecords(train, predicts!, `${what}: train`);
  const heldOut = requireRecords(test, predicts!, `${what}: test`);
  requireSameFields(learned, heldOut, what);
  if (allowNonFinite !== undefined && typeof allowNonFinite !== "boolean")
    throw new ModuleError(
      `${what}: allowNonFinite is ${excerpt(allowNonFinite)}, but must be true or false; change it`,
    );
  if (allowNonFinite !== true) {
    requireFinite(learned, `${what}: train`);
    requireFinite(heldOut, `${what}: test`);
  }
  if (remarks !== undefined && !(Array.isArray(remarks) && remarks.every((line) => typeof line === "string")))
    throw new ModuleError(`${what}: remarks is ${excerpt(remarks)}, but must be a list of lines; change it`);
  return {
    train: shareRecords(learned),
    test: shareRecords(heldOut),
    predicts: predicts!,
    classes,
    ...(classNames !== undefined && { classNames }),
    ...(augmentation !== undefined && {
      augmentation: requireAugmentation(augmentation, learned.fields["inputs"], what),
    }),
    ...(remarks !== undefined && { remarks }),
  };
};
