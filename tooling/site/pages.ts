import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { outsideCode } from "../markdown.ts";
import { repository } from "../repository.ts";
import { publishedFolders } from "./doors.ts";

/** A hand-written page of the site. */
export interface Page {
  /** Path of the page, relative to the repository root. */
  readonly path: string;
  readonly title: string;
  /** Navigation group of the page. */
  readonly group: string;
}

/** URL of the repository, used in links to files that are not pages of the site. */
const source = "https://github.com/skein-train/skein";

const title = (path: string): string => /^# (.*)$/m.exec(readFileSync(join(repository, path), "utf8"))?.[1] ?? path;

const inGroup = (group: string, pattern: string): Page[] =>
  globSync(pattern, { cwd: repository })
    .toSorted()
    .map((path) => ({ path, title: title(path).replaceAll("`", ""), group }));

/** First page of the site. */
export const landingPage = "docs/README.md";

const guidesIndex = "docs/guides/README.md";

/** Returns the guides in the order of their index page. The index page is first. */
const guides = (): Page[] => {
  const index = readFileSync(join(repository, guidesIndex), "utf8");
  const indexOf = ({ path }: Page): number => (path === guidesIndex ? -1 : index.indexOf(`](${basename(path)})`) >>> 0); // a guide without a row comes last
  return inGroup("Guides", "docs/guides/*.md").toSorted((a, b) => indexOf(a) - indexOf(b));
};

/**
 * Returns guides, further reading and measurements. Package READMEs are not included, because each README is shown on
 * the page with the exports of its package.
 */
export const handWrittenPages = (): Page[] => [
  ...guides(),
  ...inGroup("Command line", "apps/*/README.md"),
  ...inGroup("Reading on", "{docs/[!R]*.md,CONTRIBUTING.md}"),
  ...inGroup("Benchmarks", "docs/benchmarks/*.md").toReversed(),
];

/** Returns the paths of all pages of the site to which a link may point. */
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
 * Returns the text of a page with links adjusted to the site. Links to pages, including links by repository URL, become
 * relative. All other links point to the repository.
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
