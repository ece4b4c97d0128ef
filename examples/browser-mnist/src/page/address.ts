import { backendWishes, type BackendWish, compressionNames, modelNames, type Settings } from "../messages.ts";

export const batchSizes = [16, 32, 64, 128, 256] as const;
export const rankCounts = [1, 2] as const;

export interface Address {
  readonly backend: BackendWish;
  readonly settings: Settings;
}

const oneOf = <T extends string | number>(
  name: string,
  value: string | null,
  choices: readonly T[],
  otherwise: T,
): T => {
  if (value === null) return otherwise;
  const choice = choices.find((candidate) => String(candidate) === value);
  if (choice === undefined)
    throw new RangeError(`the address has ${name}=${value}, but the choices are ${choices.join(", ")}`);
  return choice;
};

/**
 * Parses the options in the query string: `?backend=cpu&model=mlp&batch=128&ranks=2&compression=top-k&seed=7`.
 * Defaults: the best backend, cnn, 64, 1, none, 1.
 *
 * @throws RangeError if a value is not supported.
 */
export const readAddress = (search: string): Address => {
  const query = new URLSearchParams(search);
  const seed = Number(query.get("seed") ?? 1);
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32)
    throw new RangeError(`the address has seed=${query.get("seed")}, but it must be an integer from 0 to 4294967295`);
  return {
    backend: oneOf("backend", query.get("backend"), backendWishes, "best"),
    settings: {
      model: oneOf("model", query.get("model"), modelNames, "cnn"),
      batchSize: oneOf("batch", query.get("batch"), batchSizes, 64),
      ranks: oneOf("ranks", query.get("ranks"), rankCounts, 1),
      compression: oneOf("compression", query.get("compression"), compressionNames, "none"),
      seed,
    },
  };
};
