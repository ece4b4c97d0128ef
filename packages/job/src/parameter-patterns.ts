import { posix } from "node:path";
import { ConfigError } from "@skein/cli/node";
import type { Shape } from "@skein/tensor-core";
import { didYouMean, leavesByPath } from "@skein/tensor-core/backend";

// A job selects parameters of a model by globs over their paths. Checkpoints and messages use the same paths.

/** Pattern that selects all parameters of fewer than two dimensions, such as biases and normalization gains. */
export const normsAndBiases = "norms-and-biases";

/** Path and shape of a parameter, by which patterns select parameters. */
export interface NamedParameter {
  readonly path: string;
  readonly shape: Shape;
}

/**
 * Converts the path of a parameter, or a pattern, to a glob: dots become slashes, except double dots in ranges such as
 * `{0..5}`.
 */
const asGlob = (path: string): string => path.replaceAll(/(?<!\.)\.(?!\.)/g, "/");

/**
 * Whether a pattern selects a parameter: by the parameter's path (`*` matches one name, `**` any number of names), by
 * the path of a submodule that contains the parameter, or by shape (`norms-and-biases`).
 */
export const selectsParameter = (pattern: string, { path, shape }: NamedParameter): boolean => {
  if (pattern === normsAndBiases) return shape.length < 2;
  const [name, glob] = [asGlob(path), asGlob(pattern)];
  return posix.matchesGlob(name, glob) || posix.matchesGlob(name, `${glob}/**`);
};

/** Returns the parameters in a tree of tensors or specs. */
export const namedParameters = (params: unknown): NamedParameter[] =>
  [...leavesByPath<{ readonly shape: Shape }>(params)].map(([path, { shape }]) => ({ path, shape }));

/** Returns the paths of all submodules and parameters of a model. */
const namesOf = (parameters: readonly NamedParameter[]): string[] => [
  ...new Set(
    parameters.flatMap(({ path }) => {
      const names = path.split(".");
      return names.map((_, i) => names.slice(0, i + 1).join("."));
    }),
  ),
];

/** Maximum number of names that an error lists. */
const maxListed = 8;

const listed = (words: readonly string[]): string =>
  `${words.slice(0, maxListed).join(", ")}${words.length > maxListed ? `, and ${words.length - maxListed} more` : ""}`;

/** Returns a suggestion for a pattern that matches nothing: the children of the pattern's longest existing prefix. */
const listParts = (pattern: string, parameters: readonly NamedParameter[]): string => {
  const requested = pattern.replaceAll("/", ".").split(/(?<!\.)\.(?!\.)/);
  for (let depth = requested.length - 1; depth > 0; depth--) {
    const whole = requested.slice(0, depth).join(".");
    const inside = parameters.filter(({ path }) => posix.matchesGlob(asGlob(path), `${asGlob(whole)}/**`));
    const parts = new Set(inside.map(({ path }) => path.split(".")[depth]!));
    if (parts.size > 0 && !whole.includes("**")) return `the parts of ${whole} are ${listed([...parts])}`;
  }
  return `its parts are ${listed([...new Set(parameters.map(({ path }) => path.split(".")[0]!))])}`;
};

/** Returns a pattern without trailing wildcards, which is probably the intended name. */
const withoutWildcards = (pattern: string): string => pattern.replace(/([./]\*+)+$/, "").replaceAll("/", ".");

/**
 * Returns the parameters that a pattern of a job selects.
 *
 * @param location key of the pattern in the job, for errors.
 * @throws ConfigError if the pattern selects no parameter.
 */
export const selectParameters = (
  pattern: string,
  parameters: readonly NamedParameter[],
  location: string,
): readonly NamedParameter[] => {
  const selected = parameters.filter((parameter) => selectsParameter(pattern, parameter));
  if (selected.length > 0) return selected;
  const near = didYouMean(withoutWildcards(pattern), [...namesOf(parameters), normsAndBiases]);
  throw new ConfigError([
    `${location}: "${pattern}" matches none of the model's ${parameters.length} parameters and no part of it; ${near === undefined ? listParts(withoutWildcards(pattern), parameters) : `did you mean "${near}"?`}`,
  ]);
};
