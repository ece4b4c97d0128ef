import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { outsideCode } from "./markdown.ts";
import { repository } from "./repository.ts";

const pages = globSync(["*.md", "docs/**/*.md", "{packages,apps,examples}/*/README.md"], {
  cwd: repository,
}).sort();
const read = (path: string): string => readFileSync(join(repository, path), "utf8");

/**
 * Returns the paths in backticks that are relative to the repository root. Names in capitals are placeholders in paths.
 */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:packages|apps|docs|tooling|benchmarks|examples|\.ci)\/[^`\s]*)`/g)]
    .map((match) => match[1]!)
    .filter((path) => !/[A-Z]{2}|[*<{]/.test(path));

/** Matches the prefix of links to this repository in published READMEs. */
const hosted = /^https:\/\/github\.com\/skein-train\/skein\/(?:blob|tree)\/main\/?/;

/** Returns the anchors of the headings of a page, in GitHub's format. */
const anchorsOf = (text: string): ReadonlySet<string> => {
  const seen = new Map<string, number>();
  const prose = text.replaceAll(/^```.*?^```$/gms, "");
  return new Set(
    [...prose.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading]) => {
      const plain = heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
      const slug = plain.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "").replaceAll(" ", "-");
      const before = seen.get(slug) ?? 0;
      seen.set(slug, before + 1);
      return before === 0 ? slug : `${slug}-${before}`;
    }),
  );
};

/**
 * Returns what is wrong with a link on a page, or undefined if the link is valid. External URLs are only checked for
 * syntax.
 */
const faultOfLink = (page: string, target: string): string | undefined => {
  const isHosted = hosted.test(target);
  if (/^[a-z]+:/.test(target) && !isHosted) return URL.canParse(target) ? undefined : `${target} is not a valid URL`;
  const [file = "", anchor] = target.replace(hosted, "").split("#");
  const path = isHosted ? file : file === "" ? page : join(dirname(page), file);
  if (!existsSync(join(repository, path))) return `${target}: there is no ${path}`;
  if (anchor === undefined || anchor === "readme") return undefined;
  return path.endsWith(".md") && anchorsOf(read(path)).has(anchor)
    ? undefined
    : `${target}: ${path} has no such heading`;
};

test.each(pages)("%s refers only to existing files and headings", (page) => {
  const text = read(page);
  const links: string[] = [];
  outsideCode(text, (prose) => {
    links.push(...[...prose.matchAll(/\]\(\s*([^)\s]+)\s*\)/g)].map(([, target]) => target!));
    return prose;
  });
  expect(links.map((target) => faultOfLink(page, target)).filter((fault) => fault !== undefined)).toEqual([]);
  expect(pathsIn(text).filter((path) => !existsSync(join(repository, path)))).toEqual([]);
});

test("rejects a link by its file, its heading, or an invalid URL", () => {
  const fault = (target: string): string | undefined => faultOfLink("docs/guides/README.md", target);
  expect(fault("../launching.md#targets")).toBeUndefined();
  expect(fault("#writing-a-guide")).toBeUndefined();
  expect(fault("https://github.com/skein-train/skein/tree/main/packages/data#readme")).toBeUndefined();
  expect(
    fault("https://github.com/skein-train/skein/blob/main/docs/errors.md#exit-codes-of-skein-train"),
  ).toBeUndefined();
  expect(fault("../launching.md#goals")).toContain("no such heading");
  expect(fault("launching.md")).toContain("there is no docs/guides/launching.md");
  expect(fault("https://github.com/skein-train/skein/blob/main/docs/goals.md")).toContain("there is no docs/goals.md");
  expect(fault("https://")).toContain("not a valid URL");
});

test("lists every guide in the index, with its title", () => {
  const index = read("docs/guides/README.md");
  const guides = globSync("docs/guides/*.md", { cwd: repository }).filter((path) => !path.endsWith("README.md"));
  expect(guides.length).toBeGreaterThan(4);
  const row = (path: string): string => `| [${/^# (.*)$/m.exec(read(path))![1]}](${basename(path)}) |`;
  expect(guides.filter((path) => !index.includes(row(path)))).toEqual([]);
});

test("docs/guides/which-compressor.md repeats the numbers of the pages that it names", () => {
  /** Returns the table rows below headings that contain all given words, as cells by method name. */
  const rows = (page: string, ...words: string[]): ReadonlyMap<string, readonly string[]> =>
    new Map(
      read(`docs/benchmarks/${page}.md`)
        .split(/^## /m)
        .filter((section) => words.every((word) => section.split("\n")[0]!.includes(word)))
        .flatMap((section) => [...section.matchAll(/^\| ([a-z-]+) +\|(.*)\|$/gm)])
        .map(([, method, cells]) => [method!, cells!.split("|").map((cell) => cell.trim())]),
    );
  const convergence = ["MNIST", "Moby-Dick"].map((model) => rows("2026-11-23-convergence", model));
  const speed = ["1 Gbit/s, 50 µs, 4 ranks", "100 Mbit/s, 20 ms, 4 ranks"].map((network) =>
    ["CNN", "GPT"].map((model) => rows("2026-11-23-slow-links", network, model)),
  );
  const claim = /^\| `([a-z-]+)`[^|\n]*\|([^|\n]*)\|([^|\n]*)\|([^|\n]*)\|([^|\n]*)\|/gm;
  const claims = [...read("docs/guides/which-compressor.md").matchAll(claim)];
  expect(claims).toHaveLength(7);
  for (const [, method, ...cells] of claims) {
    const [less, worse, ...fast] = cells.map((cell) => cell.trim());
    const factor = Number(convergence[0]!.get(method!)![5]);
    expect(less, method).toBe(factor < 10 ? factor.toFixed(1) : factor.toFixed(0));
    const losses = convergence.map((model) => {
      const [held, by, , verdict] = model.get(method!)!;
      const value = held === "–" ? "diverged" : by!.split(" ")[0]!;
      return verdict === "holds" ? value : `**${value}**`;
    });
    expect(worse, method).toBe(losses.join(", "));
    const times = speed.map((models) =>
      models.map((model) => model.get(`bsp-${method}`)![2]!.replace("×", "")).join(", "),
    );
    expect(fast, method).toEqual(times);
  }
});

test("docs/data-flow.md names functions that exist in the named files", () => {
  const text = read("docs/data-flow.md");
  const claims = [...text.matchAll(/`((?:packages|apps)\/[^`\s]*\.ts)` \(([^)]*)\)/g)].flatMap(([, path, names]) =>
    [...names!.matchAll(/`([A-Za-z]\w*)`/g)].map((match) => ({ path: path!, name: match[1]! })),
  );
  expect(claims.length).toBeGreaterThan(10);
  expect(
    claims.filter(
      ({ path, name }) => !existsSync(join(repository, path)) || !new RegExp(`\\b${name}\\b`).test(read(path)),
    ),
  ).toEqual([]);
});

test("docs/errors.md lists exactly the error codes of the code, with their kinds", () => {
  const sources = globSync(["packages/*/src/**/*.ts", "apps/*/src/**/*.ts"], { cwd: repository }).filter(
    (path) => !path.endsWith(".test.ts"),
  );
  const literal = /(?:super|new SkeinError)\(\s*"(user|environment|invariant)",\s*"([a-z-]+)"/g;
  const union =
    /constructor\(\s*code:\s*(?:\|\s*)?("[a-z-]+"(?:\s*\|\s*"[a-z-]+")*)[^}]*?super\("(user|environment|invariant)", code/g;
  const thrown = sources
    .map(read)
    .flatMap((text) => [
      ...[...text.matchAll(literal)].map(([, kind, code]) => `${code} ${kind}`),
      ...[...text.matchAll(union)].flatMap(([, codes, kind]) =>
        [...codes!.matchAll(/[a-z-]+/g)].map(([code]) => `${code} ${kind}`),
      ),
    ]);
  const listed = [...read("docs/errors.md").matchAll(/^\| `([a-z-]+)` \| (user|environment|invariant) \|/gm)].map(
    (match) => `${match[1]} ${match[2]}`,
  );
  expect(listed.toSorted()).toEqual([...new Set(thrown)].toSorted());
});

test("every error class sets its name, which a minifier would shorten", () => {
  const classes = globSync(["packages/*/src/**/*.ts", "apps/*/src/**/*.ts"], { cwd: repository })
    .filter((path) => !path.endsWith(".test.ts"))
    .flatMap((path) => [
      ...read(path).matchAll(
        /class (\w+) extends (\w+Error|Error)\b[^{]*\{((?:\s*\/\/.*)*\s*override name = "(\w+)";)?/g,
      ),
    ])
    // Errors that are never thrown to users are identified by their class.
    .filter(([, name, base]) => base !== "Error" || name === "SkeinError");
  expect(classes.length).toBeGreaterThan(40);
  expect(classes.filter(([, name, , , declared]) => declared !== name).map(([, name]) => name)).toEqual([]);
});
