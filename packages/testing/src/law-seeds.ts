import fc from "fast-check";

const { process } = globalThis as { readonly process?: { readonly env: Readonly<Record<string, string | undefined>> } };

/** What laws are tried with in the default run: a failure is one of the code, not of chance. */
const defaultSeed = 20261128;

/**
 * Seed of all laws that set none: `SKEIN_LAW_SEED`, a whole number or `random`. Default: a fixed seed, and a random one
 * in `pnpm test:full`. A law that fails prints its seed.
 */
const seedOf = ({ SKEIN_LAW_SEED: asked, SKEIN_TESTS: extent }: Readonly<Record<string, string | undefined>>) => {
  if (asked === "random" || (asked === undefined && extent === "full")) return undefined;
  const seed = asked === undefined ? defaultSeed : Number(asked);
  if (Number.isSafeInteger(seed)) return seed;
  throw new Error(`SKEIN_LAW_SEED is "${asked}"; it is a whole number, or random`);
};

const seed = seedOf(process?.env ?? {});
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
