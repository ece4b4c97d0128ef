import { posix } from "node:path";
import type { Shape } from "@skein/tensor-core";
import { didYouMean, leavesByPath } from "@skein/tensor-core/backend";
import { ConfigError } from "./errors.ts";

// How a job picks parameters of a model: by globs over their paths, which are those of checkpoints and messages.

/** Stands for all biases, and the gains of norms: parameters of fewer than two dimensions. */
export const normsAndBiases = "norms-and-biases";

/** Of a parameter, what patterns are compared with. */
export interface NamedParameter {
  readonly path: string;
  readonly shape: Shape;
}

/** Dots part the names of a path as slashes do in globs; two of them are a range, as in `{0..5}`. */
const asGlob = (path: string): string => path.replaceAll(/(?<!\.)\.(?!\.)/g, "/");

/**
 * Whether a pattern means a parameter: by its path (`*` is any one name of it, `**` are any number of names), or by
 * that of a part of the model that it lies in; or by its shape, `norms-and-biases`.
 */
export const meansParameter = (pattern: string, { path, shape }: NamedParameter): boolean => {
  if (pattern === normsAndBiases) return shape.length < 2;
  const [name, glob] = [asGlob(path), asGlob(pattern)];
  return posix.matchesGlob(name, glob) || posix.matchesGlob(name, `${glob}/**`);
};

/** The parameters of a tree, or of specs in one. */
export const namedParameters = (params: unknown): NamedParameter[] =>
  [...leavesByPath<{ readonly shape: Shape }>(params)].map(([path, { shape }]) => ({ path, shape }));

/** Parts of a model and its parameters, by the paths that name them. */
const namesOf = (parameters: readonly NamedParameter[]): string[] => [
  ...new Set(
    parameters.flatMap(({ path }) => {
      const names = path.split(".");
      return names.map((_, i) => names.slice(0, i + 1).join("."));
    }),
  ),
];

/** Most names that an error lists. */
const mostListed = 8;

/** The parts that a model consists of; those of its only part where it has one. */
const partsIn = (names: readonly string[]): string => {
  for (let depth = 1; ; depth++) {
    const parts = names.filter((name) => name.split(".").length === depth);
    if (parts.length === 0) return names.join(", ");
    if (parts.length > 1)
      return `${parts.slice(0, mostListed).join(", ")}${parts.length > mostListed ? `, and ${parts.length - mostListed} more` : ""}`;
  }
};

/** A pattern without what matches anything at its end: what its author had in mind. */
const named = (pattern: string): string => pattern.replace(/([./]\*+)+$/, "").replaceAll("/", ".");

/**
 * The parameters that a pattern of a job means.
 *
 * @param place of the pattern in the job, for errors.
 * @throws ConfigError where it means none.
 */
export const parametersOf = (
  pattern: string,
  parameters: readonly NamedParameter[],
  place: string,
): readonly NamedParameter[] => {
  const meant = parameters.filter((parameter) => meansParameter(pattern, parameter));
  if (meant.length > 0) return meant;
  const names = namesOf(parameters);
  const near = didYouMean(named(pattern), [...names, normsAndBiases]);
  throw new ConfigError([
    `${place}: "${pattern}" is none of the model's ${parameters.length} parameters, and no part of it; ${near === undefined ? `its parts are ${partsIn(names)}` : `did you mean "${near}"?`}`,
  ]);
};
