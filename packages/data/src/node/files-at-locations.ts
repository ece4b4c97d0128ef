import { DataError } from "../errors.ts";
import { isAddress } from "./byte-source.ts";
import { filesBelow, isFolder } from "./files-below.ts";

/** Maximum number of names to which braces may expand. */
const maxNames = 1_000_000;

/** Expands braces in a pattern: `a{08..10}` becomes a08, a09, a10. */
const expanded = (pattern: string): string[] => {
  const [whole, first, last] = /\{(\d+)\.\.(\d+)\}/.exec(pattern) ?? [];
  if (whole === undefined) return [pattern];
  const count = Number(last) - Number(first) + 1;
  if (!(count > 0 && count <= maxNames))
    throw new DataError(`${pattern}: ${whole} expands to ${count} shards; write the lower number first`);
  return Array.from({ length: count }, (_, i) => String(Number(first) + i).padStart(first!.length, "0")).flatMap(
    (number) => expanded(pattern.replace(whole, () => number)),
  );
};

/**
 * Returns the files at one or more locations. A location is a path, a URL, or a folder that contains files with the
 * given endings. `{000..146}` in a path or URL expands to each number.
 *
 * @param endings File name endings, such as `.tar`, of the files to use in a folder.
 * @throws DataError that ends with `cure`, if a folder has no files with these endings.
 */
export const filesAtLocations = (
  locations: string | readonly string[],
  endings: readonly string[],
  cure: string,
): string[] =>
  [locations].flat().flatMap((location) => {
    if (isAddress(location) || !isFolder(location)) return expanded(location);
    const files = filesBelow(location).filter((path) => endings.some((ending) => path.toLowerCase().endsWith(ending)));
    if (files.length === 0) throw new DataError(`${location} holds no ${endings.join(", ")} files; ${cure}`);
    return files;
  });
