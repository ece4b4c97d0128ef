import { posix } from "node:path";
import type { Shape } from "@skein/tensor-core";
import { didYouMean, leavesByPath } from "@skein/tensor-core/backend";
import { ConfigError } from "../errors.ts";

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

const listed = (words: readonly string[]): string =>
  `${words.slice(0, mostListed).join(", ")}${words.length > mostListed ? `, and ${words.length - mostListed} more` : ""}`;

/** What there is instead of a pattern: the parts of what of it is there, from its beginning. */
const partsBeside = (pattern: string, parameters: readonly NamedParameter[]): string => {
  const asked = pattern.replaceAll("/", ".").split(/(?<!\.)\.(?!\.)/);
  for (let depth = asked.length - 1; depth > 0; depth--) {
    const whole = asked.slice(0, depth).join(".");
    const inside = parameters.filter(({ path }) => posix.matchesGlob(asGlob(path), `${asGlob(whole)}/**`));
    const parts = new Set(inside.map(({ path }) => path.split(".")[depth]!));
    if (parts.size > 0 && !whole.includes("**")) return `the parts of ${whole} are ${listed([...parts])}`;
  }
  return `its parts are ${listed([...new Set(parameters.map(({ path }) => path.split(".")[0]!))])}`;
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
  const near = didYouMean(named(pattern), [...namesOf(parameters), normsAndBiases]);
  throw new ConfigError([
    `${place}: "${pattern}" is none of the model's ${parameters.length} parameters, and no part of it; ${near === undefined ? partsBeside(named(pattern), parameters) : `did you mean "${near}"?`}`,
  ]);
};
