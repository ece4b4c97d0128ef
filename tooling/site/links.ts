import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const decoded = (text: string): string => decodeURIComponent(text.replaceAll("&amp;", "&"));

/** An address that leads away from the site, and is one. */
const isOutside = (target: string): boolean => {
  if (/^(data|mailto):/.test(target)) return true;
  return /^https?:/.test(target) && URL.canParse(target);
};

/**
 * Links and images of the pages in a folder that lead nowhere, as `page: target`, sorted: to a file that is not there,
 * or to a place that no element of its page has. Addresses of other hosts must be well formed; nobody is asked.
 */
export const brokenLinks = (folder: string): string[] => {
  const files = new Set(globSync("**/*.*", { cwd: folder }));
  const pages = [...files]
    .filter((file) => file.endsWith(".html"))
    .map((path) => ({ path, text: readFileSync(join(folder, path), "utf8") }));
  const places = new Map(
    pages.map(({ path, text }) => [
      path,
      new Set([...text.matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id]) => decoded(id!))),
    ]),
  );
  return pages
    .flatMap(({ path, text }) =>
      [...new Set([...text.matchAll(/<(?:a|img|link|script)\s[^>]*?(?:href|src)="([^"]*)"/g)].map(([, link]) => link!))]
        .filter((target) => !isOutside(target))
        .filter((target) => {
          const [file = "", place] = target.split("#");
          const page = file === "" ? path : join(dirname(path), decoded(file));
          if (!files.has(page)) return true;
          return place !== undefined && place !== "" && places.has(page) && !places.get(page)!.has(decoded(place));
        })
        .map((target) => `${path}: ${target}`),
    )
    .toSorted();
};
