import { ConfigError } from "@skein/cli/node";
import { type Job, namedParameters, selectParameters } from "@skein/job/node";
import { mapTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";

// Frozen parameters have no gradient. Loss, gradients, exchange, clipping, optimizer and running mean use a tree of the
// trained parameters, which has an empty list in place of each frozen leaf. The state of a run, and so a checkpoint,
// has all parameters; their names do not depend on freezing.

/** Placeholder for a frozen leaf: an empty list, which has no leaves. */
const frozenLeaf: readonly never[] = [];

/**
 * Returns the paths of the parameters that a job freezes. For each parameter, the last matching pattern decides; a
 * pattern with `!` unfreezes.
 *
 * @param params tree of the model's parameters, or of their specs.
 * @throws ConfigError if a pattern matches no parameter, if a pattern unfreezes a parameter that is not frozen, or if
 * no parameter is left to train.
 */
export const frozenPaths = (freeze: Job["freeze"], params: unknown): ReadonlySet<string> => {
  const frozen = new Set<string>();
  if (freeze === undefined) return frozen;
  const parameters = namedParameters(params);
  for (const [i, pattern] of freeze.entries()) {
    const [location, unfreezes] = [`freeze[${i}]`, pattern.startsWith("!")];
    const matched = selectParameters(unfreezes ? pattern.slice(1) : pattern, parameters, location);
    if (unfreezes && !matched.some(({ path }) => frozen.has(path)))
      throw new ConfigError([
        `${location}: "${pattern}" unfreezes parameters that no earlier pattern has frozen; put a freezing pattern before it, as in freeze: ["**", "${pattern}"]`,
      ]);
    for (const { path } of matched)
      if (unfreezes) frozen.delete(path);
      else frozen.add(path);
  }
  if (frozen.size === parameters.length)
    throw new ConfigError([
      `freeze: all ${parameters.length} parameters of the model are frozen, so nothing is left to train; unfreeze some, as in freeze: ["**", "!${parameters.at(-1)!.path}"]`,
    ]);
  return frozen;
};

/** Frozen parameters of a run. */
export interface Freezing {
  /** Paths of the parameters that are not trained. */
  readonly frozen: ReadonlySet<string>;
}

/** Returns the tree of the trained parameters of a model. */
export const trainedOf = <T>({ frozen }: Freezing, params: T): T =>
  frozen.size === 0 ? params : (mapTree(params, (leaf: unknown, path) => (frozen.has(path) ? frozenLeaf : leaf)) as T);

/** Returns the parameters of a model, with the parameters that are also in `changed` replaced by their values there. */
export const withParameters = <T>(params: T, changed: unknown): T => {
  const byPath = leavesByPath<unknown>(changed);
  return mapTree(params, (leaf: unknown, path) => byPath.get(path) ?? leaf) as T;
};
