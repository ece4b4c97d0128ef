import { formatShape, sameShape, type StoredDType, type StoredSpec } from "@skein/tensor-core";
import { excerptName } from "@skein/tensor-core/backend";
import type { Opened } from "./architecture.ts";
import { PretrainedError } from "./errors.ts";
import type { FloatDType } from "./float-bits.ts";
import type { ModelLeaf } from "./model-leaves.ts";
import { isOfQuantised } from "./quantised.ts";

export interface MatchedTensors {
  /** Name in the files of each leaf, by its path. */
  readonly names: ReadonlyMap<string, string>;
  /** Path of the leaf that a tensor repeats, by its name. */
  readonly copies: ReadonlyMap<string, string>;
  /** Names of tensors that are carried along. */
  readonly carried: readonly string[];
  /** Paths of leaves that are to be made anew. */
  readonly made: ReadonlySet<string>;
}

/** How many of each kind a message names. */
const named = 4;

const isWeight = (dtype: StoredDType): dtype is FloatDType => dtype === "f32" || dtype === "f16" || dtype === "bf16";

const listed = (count: string, entries: readonly string[]): string[] =>
  entries.length === 0
    ? []
    : [
        `${entries.length} ${count} (${entries.slice(0, named).join(", ")}${entries.length > named ? `, … ${entries.length - named} more` : ""})`,
      ];

/**
 * Names in the files, by what today's program would call them in a checkpoint of the whole model.
 *
 * @throws PretrainedError where two names are one today.
 */
const canonicalNames = (
  names: Iterable<string>,
  { prefix = "", renamed = [], copies = new Map() }: Opened,
  leaves: readonly ModelLeaf[],
  origin: string,
): ReadonlyMap<string, string> => {
  const wanted = new Set([...leaves.map(({ name }) => name), ...copies.keys()]);
  const given = [...names].sort();
  const isWhole = given.some((name) => name.startsWith(prefix));
  const canonical = new Map<string, string>();
  for (const name of given) {
    const today = renamed.reduce((text, [old, now]) => text.replace(old, now), name);
    const whole = isWhole || wanted.has(today) ? today : `${prefix}${today}`;
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
 * Find the tensor of each leaf of a model among those of a checkpoint.
 *
 * @param specs of all tensors of the checkpoint, by name.
 * @param origin where they come from, for the message.
 * @param newHead leave the head of the checkpoint, whichever that is, for a new one.
 * @throws PretrainedError that counts and names tensors that are missing, not of the model, of another shape, and of
 * numbers that are no weights.
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
  const [missing, misshaped, noFloats]: [string[], string[], string[]] = [[], [], []];
  const taken = new Set<string>();
  const made = new Set<string>();
  for (const { path, name, nameShape } of leaves) {
    const own = stored.get(name);
    if (head?.made.test(path) === true || (own === undefined && head?.madeWhereMissing?.test(path) === true)) {
      made.add(path);
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
      misshaped.push(`${excerptName(own)} is ${formatShape(shape)} for ${formatShape(nameShape)}`);
    else if (!isWeight(dtype)) noFloats.push(`${excerptName(own)} is ${dtype}`);
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
  const quantised = [...stored.values()].filter((name) => !taken.has(name) && isOfQuantised(name));
  if (missing.length + misshaped.length + noFloats.length > 0 && quantised.length > 0)
    throw new PretrainedError(
      `${origin} has ${quantised.length} tensors of quantised weights, such as ${excerptName(quantised[0]!)}, but weights are read in f32, f16 and bf16 only; take the checkpoint that they were quantised from`,
    );
  const faults = [
    ...listed("missing", missing),
    ...listed("that the model does not have", extra),
    ...listed("of another shape", misshaped),
    ...listed("that are no f32, f16 or bf16", noFloats),
  ];
  if (faults.length > 0)
    throw new PretrainedError(
      `${origin} has ${specs.size} tensors for a model of ${leaves.length}, which do not fit its config.json: ${faults.join("; ")}; take tensors and config.json from the same checkpoint, of an architecture and settings that are supported`,
    );
  return { names, copies, carried, made };
};
