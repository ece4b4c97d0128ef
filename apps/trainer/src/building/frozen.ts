import { mapTree } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { ConfigError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { namedParameters, parametersOf } from "../job/parameter-patterns.ts";

// Of what a run leaves as it is there is no gradient: loss and gradients, their exchange, clipping, optimizer and
// running mean are of the trained parameters alone, a tree like that of all with nothing in the places of the others.
// The state of a run, and so a checkpoint, has all of them, under the same names whatever is frozen.

/** What stands in the place of a frozen leaf: a list of no leaves. */
const nothing: readonly never[] = [];

/**
 * Paths of the parameters that a job leaves as they are: those that the last of its patterns to mean them does not take
 * back with `!`.
 *
 * @param params tree of the model's parameters, or of their specs.
 * @throws ConfigError for a pattern that means none, or takes back what is not frozen; where nothing is left to train.
 */
export const frozenPaths = (freeze: Job["freeze"], params: unknown): ReadonlySet<string> => {
  const frozen = new Set<string>();
  if (freeze === undefined) return frozen;
  const parameters = namedParameters(params);
  for (const [i, pattern] of freeze.entries()) {
    const [place, takesBack] = [`freeze[${i}]`, pattern.startsWith("!")];
    const meant = parametersOf(takesBack ? pattern.slice(1) : pattern, parameters, place);
    if (takesBack && !meant.some(({ path }) => frozen.has(path)))
      throw new ConfigError([
        `${place}: "${pattern}" takes back what no pattern before it has frozen; put such a one before it, as in freeze: ["**", "${pattern}"]`,
      ]);
    for (const { path } of meant)
      if (takesBack) frozen.delete(path);
      else frozen.add(path);
  }
  if (frozen.size === parameters.length)
    throw new ConfigError([
      `freeze: all ${parameters.length} parameters of the model are frozen, so nothing is left to train; take some back, as in freeze: ["**", "!${parameters.at(-1)!.path}"]`,
    ]);
  return frozen;
};

/** Which parameters a run leaves as they are. */
export interface Freezing {
  /** By path. */
  readonly frozen: ReadonlySet<string>;
}

/** Of the parameters of a model, those that are trained. */
export const trainedOf = <T>({ frozen }: Freezing, params: T): T =>
  frozen.size === 0 ? params : (mapTree(params, (leaf: unknown, path) => (frozen.has(path) ? nothing : leaf)) as T);

/** The parameters of a model with other ones in the places of those that are in `changed` too. */
export const withParameters = <T>(params: T, changed: unknown): T => {
  const byPath = leavesByPath<unknown>(changed);
  return mapTree(params, (leaf: unknown, path) => byPath.get(path) ?? leaf) as T;
};
