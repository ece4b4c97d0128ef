import { DataError } from "../errors.ts";
import { isAddress } from "./byte-source.ts";
import { filesBelow, isFolder } from "./files-below.ts";

/** Most names that braces may stand for. */
const mostNames = 1_000_000;

/** Names for a pattern: `a{08..10}` is a08, a09, a10. */
const expanded = (pattern: string): string[] => {
  const [whole, first, last] = /\{(\d+)\.\.(\d+)\}/.exec(pattern) ?? [];
  if (whole === undefined) return [pattern];
  const count = Number(last) - Number(first) + 1;
  if (!(count > 0 && count <= mostNames))
    throw new DataError(`${pattern}: ${whole} stands for ${count} shards; write the lower number first`);
  return Array.from({ length: count }, (_, i) => String(Number(first) + i).padStart(first!.length, "0")).flatMap(
    (number) => expanded(pattern.replace(whole, () => number)),
  );
};

/**
 * Files that stand at places: paths, addresses, folders with such files, or several of these; `{000..146}` stands for
 * each of these numbers.
 *
 * @param endings of names of files in folders, such as `.tar`.
 * @throws DataError that ends with `cure` for a folder without such files.
 */
export const filesOfPlaces = (places: string | readonly string[], endings: readonly string[], cure: string): string[] =>
  [places].flat().flatMap((place) => {
    if (isAddress(place) || !isFolder(place)) return expanded(place);
    const files = filesBelow(place).filter((path) => endings.some((ending) => path.toLowerCase().endsWith(ending)));
    if (files.length === 0) throw new DataError(`${place} holds no ${endings.join(", ")} files; ${cure}`);
    return files;
  });
