import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { outsideCode } from "../markdown.ts";
import { repository } from "../repository.ts";
import { publishedFolders } from "./doors.ts";

/** A page of the site that is written by hand. */
export interface Page {
  /** From the repository's root. */
  readonly path: string;
  readonly title: string;
  /** Under which it stands in the list beside the pages. */
  readonly group: string;
}

/** Where files that are no page of the site can be read. */
const source = "https://github.com/skein-train/skein";

const title = (path: string): string => /^# (.*)$/m.exec(readFileSync(join(repository, path), "utf8"))?.[1] ?? path;

const inGroup = (group: string, pattern: string): Page[] =>
  globSync(pattern, { cwd: repository })
    .toSorted()
    .map((path) => ({ path, title: title(path).replaceAll("`", ""), group }));

/** The page that the site begins with. */
export const landingPage = "docs/README.md";

const guidesIndex = "docs/guides/README.md";

/** The guides in the order of their index, which stands first. */
const guides = (): Page[] => {
  const index = readFileSync(join(repository, guidesIndex), "utf8");
  const place = ({ path }: Page): number => (path === guidesIndex ? -1 : index.indexOf(`](${basename(path)})`) >>> 0); // one without a row comes last
  return inGroup("Guides", "docs/guides/*.md").toSorted((a, b) => place(a) - place(b));
};

/** Guides, what to read on, measurements; the README of each package stands on the page of its exports. */
export const handWrittenPages = (): Page[] => [
  ...guides(),
  ...inGroup("Command line", "apps/*/README.md"),
  ...inGroup("Reading on", "{docs/[!R]*.md,CONTRIBUTING.md}"),
  ...inGroup("Benchmarks", "docs/benchmarks/*.md").toReversed(),
];

/** Everything that a link may lead to as a page of the site. */
const pagesByPath = (): ReadonlySet<string> =>
  new Set([
    landingPage,
    ...handWrittenPages().map(({ path }) => path),
    ...publishedFolders().map((folder) => join(folder, "README.md")),
  ]);

const asPage = (path: string): string => {
  const file = join(repository, path);
  return existsSync(file) && statSync(file).isDirectory() && existsSync(join(file, "README.md"))
    ? join(path, "README.md")
    : path;
};

/**
 * The text of a page, with links that hold on the site: to other pages of it, wherever the text says
 * them by their address in the repository, and else to the repository.
 */
export const pageText = (path: string): string => {
  const pages = pagesByPath();
  const link = (target: string): string => {
    const hosted = target.startsWith(`${source}/`)
      ? /^\/(?:blob|tree)\/main\/(.*)$/.exec(target.slice(source.length))
      : null;
    if (target.startsWith("#") || (/^[a-z]+:/.test(target) && hosted === null)) return target;
    const [file = "", anchor] = (hosted?.[1] ?? join(dirname(path), target)).split("#");
    const page = asPage(file.replace(/\/$/, ""));
    const after = anchor === undefined || anchor === "readme" ? "" : `#${anchor}`;
    if (pages.has(page)) return `./${relative(dirname(path), page)}${after}`;
    if (/\.(svg|png)$/.test(file)) return target;
    const kind = existsSync(join(repository, file)) && statSync(join(repository, file)).isDirectory() ? "tree" : "blob";
    return `${source}/${kind}/main/${file}${after}`;
  };
  const text = readFileSync(join(repository, path), "utf8");
  return outsideCode(text, (prose) => prose.replace(/\]\(([^)\s]+)\)/g, (_, target: string) => `](${link(target)})`));
};
