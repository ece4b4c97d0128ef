import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { sha256 } from "../files/sha256.ts";

/** What each module of a user's has imported by a path of its own, by file URL. */
const importsOf = new Map<string, Set<string>>();

const isPath = (specifier: string): boolean => /^(?:\.{0,2}\/|file:)/.test(specifier);

const isOurs = (specifier: string): boolean => /^(?:@skein\/|skein-train(?:\/|$))/.test(specifier);

let watching = false;

/**
 * Watch what modules of users import, from `entry` on. Two things follow from it: their content is known, for hashes,
 * and what they import of Skein is what this program runs on. Two copies of the graph would know nothing of each
 * other's tensors.
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
          return next(specifier, context); // a package of ours that this program has no need of
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

/** Import a module of a user's. @param url of its file. @returns its exports. */
export const importWatched = async (url: string): Promise<Readonly<Record<string, unknown>>> => {
  watchFrom(url);
  return (await import(url)) as Record<string, unknown>;
};

/**
 * The file of a module that was imported, or was to be, and those of all that it imports by a path, as far as known.
 *
 * @param url of the file.
 */
export const watchedFiles = (url: string): string[] => {
  const seen = new Set([url]);
  for (const each of seen) for (const imported of importsOf.get(each) ?? []) seen.add(imported);
  return [...seen].map((file) => fileURLToPath(file));
};

/**
 * SHA-256 of the content of a module that was imported, and of all that it imports by a path, wherever the folder lies.
 * What packages hold is not in it, nor what the module imports only later.
 */
export const contentDigest = (url: string): string => {
  const folder = dirname(fileURLToPath(url));
  const contents = watchedFiles(url).map(
    (file) => `${relative(folder, file).replaceAll("\\", "/")} ${sha256(readFileSync(file))}`,
  );
  return sha256(contents.sort().join("\n"));
};
