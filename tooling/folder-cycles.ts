import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";
import { repository } from "./repository.ts";

/** An import between two files of a package. Paths are relative to the source folder of the package. */
interface Import {
  readonly from: string;
  readonly to: string;
}

const sourcesIn = (root: string): string[] =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.m?tsx?$/.test(path) && !/\.test\.tsx?$|(^|\/)(generated|node_modules)\//.test(path))
    .sort();

const importsOf = (root: string, from: string): Import[] =>
  ts
    .preProcessFile(readFileSync(join(root, from), "utf8"), true, true)
    .importedFiles.filter(({ fileName }) => fileName.startsWith("."))
    .map(({ fileName }) => ({ from, to: relative(root, join(root, dirname(from), fileName)) }))
    .filter(({ to }) => !to.startsWith(".."));

/** Returns the deepest folder that contains both files, and the two entries of this folder that contain the files. */
const level = ({ from, to }: Import): { readonly folder: string; readonly entries: readonly [string, string] } => {
  const [a, b] = [from.split("/"), to.split("/")];
  let depth = 0;
  while (a[depth] === b[depth]) depth++;
  return { folder: a.slice(0, depth).join("/"), entries: [a[depth]!, b[depth]!] };
};

/**
 * Imports between the entries of a folder, by importing entry and then by imported entry. For each pair of entries, one
 * import between the two is stored.
 */
type FolderImports = Map<string, Map<string, Import>>;

/** Returns the shortest chain of imports from an entry back to the same entry. Undefined if there is no such chain. */
const cycleThrough = (start: string, imports: FolderImports): readonly Import[] | undefined => {
  const chains = new Map<string, readonly Import[]>([[start, []]]);
  // Iteration over a map includes entries added during the iteration, so this loop is a breadth-first search.
  for (const [entry, chain] of chains)
    for (const [next, example] of imports.get(entry) ?? []) {
      if (next === start) return [...chain, example];
      if (!chains.has(next)) chains.set(next, [...chain, example]);
    }
  return undefined;
};

/**
 * Finds import cycles between the entries of each folder, at all levels below `root`. An entry is a file, or a
 * subfolder with all its files. Type-only imports are included; imports by tests are not.
 *
 * @returns One line per folder with a cycle, with the imports of its shortest cycle.
 */
export const folderCycles = (root: string): string[] => {
  const folders = new Map<string, FolderImports>();
  for (const file of sourcesIn(root))
    for (const found of importsOf(root, file)) {
      if (found.from === found.to) continue;
      const { folder, entries } = level(found);
      const imports: FolderImports = folders.get(folder) ?? new Map();
      const fromEntry = imports.get(entries[0]) ?? new Map<string, Import>();
      folders.set(folder, imports.set(entries[0], fromEntry.set(entries[1], found)));
    }
  return [...folders].sort().flatMap(([folder, imports]) => {
    const cycles = [...imports.keys()]
      .map((entry) => cycleThrough(entry, imports))
      .filter((cycle) => cycle !== undefined);
    const [shortest] = cycles.sort((a, b) => a.length - b.length);
    if (shortest === undefined) return [];
    return [`${join(root, folder)}: ${shortest.map(({ from, to }) => `${from} imports ${to}`).join(", ")}`];
  });
};

/** Returns the source folders of all packages and apps. */
const sourceFolders = (): string[] =>
  ["packages", "apps"]
    .flatMap((group) => readdirSync(join(repository, group)).map((name) => join(group, name, "src")))
    .concat("benchmarks/src")
    .filter((folder) => existsSync(join(repository, folder)));

if (import.meta.main) {
  const lines = sourceFolders().flatMap((folder) => folderCycles(join(repository, folder)));
  for (const line of lines) console.error(`${line}; entries of a folder import one way, so move a file or cut one up`);
  if (lines.length > 0) process.exitCode = 1;
}
