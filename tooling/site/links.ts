import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const decoded = (text: string): string => decodeURIComponent(text.replaceAll("&amp;", "&"));

/** Whether a link is a valid URL to another site. */
const isOutside = (target: string): boolean => {
  if (/^(data|mailto):/.test(target)) return true;
  return /^https?:/.test(target) && URL.canParse(target);
};

/**
 * Returns the broken links and images of the pages in a folder, sorted, as `page: target`. A link is broken if the file
 * is missing, or if no element has the anchor. URLs of other hosts must be valid, but the hosts are not contacted.
 */
export const brokenLinks = (folder: string): string[] => {
  const files = new Set(globSync("**/*.*", { cwd: folder }));
  const pages = [...files]
    .filter((file) => file.endsWith(".html"))
    .map((path) => ({ path, text: readFileSync(join(folder, path), "utf8") }));
  const anchors = new Map(
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
          const [file = "", anchor] = target.split("#");
          const page = file === "" ? path : join(dirname(path), decoded(file));
          if (!files.has(page)) return true;
          return anchor !== undefined && anchor !== "" && anchors.has(page) && !anchors.get(page)!.has(decoded(anchor));
        })
        .map((target) => `${path}: ${target}`),
    )
    .toSorted();
};
