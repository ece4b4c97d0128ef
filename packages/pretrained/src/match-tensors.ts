import { formatShape, sameShape, type StoredDType, type StoredSpec } from "@skein/tensor-core";
import { excerptName } from "@skein/tensor-core/backend";
import type { Opened } from "./architecture.ts";
import { PretrainedError } from "./errors.ts";
import type { FloatDType } from "./float-bits.ts";
import type { ModelLeaf } from "./model-leaves.ts";
import { isQuantisedTensor } from "./quantised.ts";

export interface MatchedTensors {
  /** Tensor name in the files for each leaf, by leaf path. */
  readonly names: ReadonlyMap<string, string>;
  /** Path of the leaf that each duplicate tensor repeats, by the duplicate's name. */
  readonly copies: ReadonlyMap<string, string>;
  /** Names of additional tensors in the files, which are not loaded. */
  readonly carried: readonly string[];
  /** Paths of the leaves to initialize for a new head. */
  readonly initialised: ReadonlySet<string>;
}

/** Maximum number of tensors listed in a message for each type of mismatch. */
const named = 4;

const isWeight = (dtype: StoredDType): dtype is FloatDType => dtype === "f32" || dtype === "f16" || dtype === "bf16";

const listed = (count: string, entries: readonly string[]): string[] =>
  entries.length === 0
    ? []
    : [
        `${entries.length} ${count} (${entries.slice(0, named).join(", ")}${entries.length > named ? `, … ${entries.length - named} more` : ""})`,
      ];

/**
 * Returns the tensor names in the files, by canonical name. A canonical name is the current name in a checkpoint of the
 * complete model.
 *
 * @throws PretrainedError if two names in the files have the same canonical name.
 */
const canonicalNames = (
  names: Iterable<string>,
  { prefix = "", renamed = [], copies = new Map() }: Opened,
  leaves: readonly ModelLeaf[],
  origin: string,
): ReadonlyMap<string, string> => {
  const expected = new Set([...leaves.map(({ name }) => name), ...copies.keys()]);
  const given = [...names].sort();
  const isWhole = given.some((name) => name.startsWith(prefix));
  const canonical = new Map<string, string>();
  for (const name of given) {
    const current = renamed.reduce((text, [old, now]) => text.replace(old, now), name);
    const whole = isWhole || expected.has(current) ? current : `${prefix}${current}`;
    const other = canonical.get(whole);
    if (other !== undefined)
      throw new PretrainedError(
        `${origin} holds ${excerptName(other)} and ${excerptName(name)}, which are names of one tensor; remove one of them`,
      );
    canonical.set(whole, name);
  }
  return canonical;
};

/**
 * Matches the leaves of a model with the tensors of a checkpoint.
 *
 * @param specs Specs of all tensors of the checkpoint, by name.
 * @param origin Origin of the checkpoint, for the message.
 * @param newHead Whether the checkpoint's head, of any type, is replaced by a new head.
 * @throws PretrainedError with the numbers and names of tensors that are missing or unexpected, or that have another
 * shape or an unsupported dtype.
 */
export const matchTensors = (
  opened: Opened,
  leaves: readonly ModelLeaf[],
  specs: ReadonlyMap<string, StoredSpec>,
  origin: string,
  newHead = false,
): MatchedTensors => {
  const head = newHead ? opened.head : undefined;
  const stored = canonicalNames(specs.keys(), opened, leaves, origin);
  const names = new Map<string, string>();
  const [missing, misshaped, nonFloats]: [string[], string[], string[]] = [[], [], []];
  const taken = new Set<string>();
  const initialised = new Set<string>();
  for (const { path, name, nameShape } of leaves) {
    const own = stored.get(name);
    if (
      head?.initialised.test(path) === true ||
      (own === undefined && head?.initialisedIfMissing?.test(path) === true)
    ) {
      initialised.add(path);
      continue;
    }
    if (own === undefined) {
      missing.push(`${excerptName(name)} ${formatShape(nameShape)}`);
      continue;
    }
    taken.add(own);
    names.set(path, own);
    const { dtype, shape } = specs.get(own)!;
    if (!sameShape(shape, nameShape))
      misshaped.push(`${excerptName(own)} is ${formatShape(shape)} instead of ${formatShape(nameShape)}`);
    else if (!isWeight(dtype)) nonFloats.push(`${excerptName(own)} is ${dtype}`);
  }
  const pathOf = new Map(leaves.map(({ path, name }) => [name, path]));
  const copies = new Map<string, string>();
  const carried: string[] = [];
  const extra: string[] = [];
  for (const [name, own] of stored) {
    if (taken.has(own) || head?.dropped.test(name) === true) continue;
    const original = opened.copies?.get(name);
    if (original !== undefined) copies.set(own, pathOf.get(original)!);
    else if (opened.carried?.some((pattern) => pattern.test(name))) carried.push(own);
    else extra.push(`${excerptName(own)} ${formatShape(specs.get(own)!.shape)}`);
  }
  const quantised = [...stored.values()].filter((name) => !taken.has(name) && isQuantisedTensor(name));
  if (missing.length + misshaped.length + nonFloats.length > 0 && quantised.length > 0)
    throw new PretrainedError(
      `${origin} has ${quantised.length} tensors of quantised weights, such as ${excerptName(quantised[0]!)}, but only weights in f32, f16 and bf16 are supported; use the original checkpoint before quantization`,
    );
  const faults = [
    ...listed("missing", missing),
    ...listed("that the model does not have", extra),
    ...listed("of another shape", misshaped),
    ...listed("of a dtype other than f32, f16 or bf16", nonFloats),
  ];
  if (faults.length > 0)
    throw new PretrainedError(
      `${origin} has ${specs.size} tensors for a model of ${leaves.length}, which do not match its config.json: ${faults.join("; ")}; use tensors and config.json of the same checkpoint, with a supported architecture and supported settings`,
    );
  return { names, copies, carried, initialised };
};
