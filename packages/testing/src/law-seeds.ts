import fc from "fast-check";

const { process } = globalThis as { readonly process?: { readonly env: Readonly<Record<string, string | undefined>> } };

/**
 * Seed of property tests in the default run. The seed is fixed, so that a failure is caused by the code and not by
 * chance.
 */
const defaultSeed = 20261128;

/**
 * Returns the seed of all property tests that do not set a seed, from `SKEIN_LAW_SEED`: an integer or `random`.
 * Default: a fixed seed, or a random seed in `pnpm test:full`. Returns undefined for a random seed. A failing test
 * prints its seed.
 */
const seedOf = ({ SKEIN_LAW_SEED: value, SKEIN_TESTS: extent }: Readonly<Record<string, string | undefined>>) => {
  if (value === "random" || (value === undefined && extent === "full")) return undefined;
  const seed = value === undefined ? defaultSeed : Number(value);
  if (Number.isSafeInteger(seed)) return seed;
  throw new Error(`SKEIN_LAW_SEED is "${value}", but must be an integer or random; correct it`);
};

const seed = seedOf(process?.env ?? {});
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
