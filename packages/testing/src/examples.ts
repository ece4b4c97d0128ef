const { process } = globalThis as { readonly process?: { readonly env: Readonly<Record<string, string | undefined>> } };

/**
 * What a law is tried with: `few` examples by default, which find what is broken on purpose, and `many` before a
 * release, by `pnpm test:full`.
 */
export const examples = <T>(few: T, many: T): T => (process?.env["SKEIN_TESTS"] === "full" ? many : few);
