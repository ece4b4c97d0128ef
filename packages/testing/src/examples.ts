const { process } = globalThis as { readonly process?: { readonly env: Readonly<Record<string, string | undefined>> } };

/**
 * Returns the number of examples of a property test: `few` by default, which suffices to find deliberate defects, and
 * `many` before a release, with `pnpm test:full`.
 */
export const examples = <T>(few: T, many: T): T => (process?.env["SKEIN_TESTS"] === "full" ? many : few);
