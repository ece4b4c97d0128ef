import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256 } from "@skein/cli/node";

/** URLs of the files that each user module imports by relative or absolute path, by URL of the module. */
const importsOf = new Map<string, Set<string>>();

const isPath = (specifier: string): boolean => /^(?:\.{0,2}\/|file:)/.test(specifier);

const isOurs = (specifier: string): boolean => /^(?:@skein\/|skein-train(?:\/|$))/.test(specifier);

let watching = false;

/**
 * Tracks the imports of user modules, starting at `entry`, because the content digest covers imported files. Imports of
 * Skein packages are resolved to the copy that this program uses, because a second copy would not recognize tensors of
 * this copy.
 */
const watchFrom = (entry: string): void => {
  if (!importsOf.has(entry)) importsOf.set(entry, new Set());
  if (watching) return;
  watching = true;
  registerHooks({
    resolve: (specifier, context, next) => {
      const found = context.parentURL === undefined ? undefined : importsOf.get(context.parentURL);
      if (found === undefined) return next(specifier, context);
      if (isOurs(specifier)) {
        try {
          return next(specifier, { ...context, parentURL: import.meta.url });
        } catch {
          return next(specifier, context); // this program does not use the Skein package
        }
      }
      const resolved = next(specifier, context);
      if (isPath(specifier) && resolved.url.startsWith("file:")) {
        found.add(resolved.url);
        if (!importsOf.has(resolved.url)) importsOf.set(resolved.url, new Set());
      }
      return resolved;
    },
  });
};

/**
 * Imports a user module and tracks its imports.
 * @param url URL of the module file. @returns the exports of the module.
 */
export const importWatched = async (url: string): Promise<Readonly<Record<string, unknown>>> => {
  watchFrom(url);
  return (await import(url)) as Record<string, unknown>;
};

/**
 * Returns the paths of a user module and of the files that it imports by path, as far as they are known if the import
 * failed.
 *
 * @param url URL of the module file.
 */
export const watchedFiles = (url: string): string[] => {
  const seen = new Set([url]);
  for (const each of seen) for (const imported of importsOf.get(each) ?? []) seen.add(imported);
  return [...seen].map((file) => fileURLToPath(file));
};

/**
 * Computes the SHA-256 of an imported module together with the files that it imports by path. The result does not
 * depend on the folder. Packages and later dynamic imports are not included.
 */
export const contentDigest = (url: string): string => {
  const folder = dirname(fileURLToPath(url));
  const contents = watchedFiles(url).map(
    (file) => `${relative(folder, file).replaceAll("\\", "/")} ${sha256(readFileSync(file))}`,
  );
  return sha256(contents.sort().join("\n"));
};
