import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./repository.ts";

/** URL of the public repository. The `package.json` of each package contains it, and READMEs link to it. */
const address = "https://github.com/skein-train/skein";

const read = (path: string): string => readFileSync(join(repository, path), "utf8");

const folders = globSync(["packages/*/package.json", "apps/*/package.json"], { cwd: repository })
  .map((path) => dirname(path))
  .filter((folder) => (JSON.parse(read(join(folder, "package.json"))) as { private?: boolean }).private !== true)
  .sort();

test("packages are published", () => expect(folders.length).toBeGreaterThan(8));

test.each(folders)("%s describes its origin, topic and side effects in its manifest", (folder) => {
  const manifest = JSON.parse(read(join(folder, "package.json"))) as Record<string, unknown>;
  expect(manifest).toMatchObject({
    license: "Apache-2.0",
    description: expect.stringMatching(/\.$/),
    homepage: `${address}/tree/main/${folder}#readme`,
    repository: { type: "git", url: `git+${address}.git`, directory: folder },
    bugs: `${address}/issues`,
    files: expect.arrayContaining(["dist", "README.md", "LICENSE"]),
  });
  const keywords = manifest["keywords"] as string[];
  expect(keywords.length).toBeGreaterThan(3);
  expect(keywords).toEqual([...new Set(keywords)].toSorted());
  // A command has side effects when it is imported. All other published files have no side effects until a function is
  // called.
  const commands = Object.values((manifest["bin"] ?? {}) as Record<string, string>);
  expect(manifest["sideEffects"]).toEqual(commands.length === 0 ? false : expect.arrayContaining(commands));
});

test.each(folders)(
  "the README of %s has no relative link out of the package, which the registry's page would break",
  (folder) => {
    const links = [...read(join(folder, "README.md")).matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1]!);
    expect(
      links.filter((link) => !/^(#|https?:)/.test(link) && !normalize(join(folder, link)).startsWith(`${folder}/`)),
    ).toEqual([]);
  },
);

test.each(["README.md", ...folders.map((folder) => join(folder, "README.md"))])(
  "links of %s into the repository refer to existing files",
  (page) => {
    const paths = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map((match) => match[1]!)
      .filter((link) => link.startsWith(`${address}/`))
      .map((link) => link.slice(address.length + 1).split("#")[0]!);
    expect(
      paths.filter(
        (path) => !/^(blob|tree)\/main\//.test(path) || !existsSync(join(repository, path.replace(/^\w+\/main\//, ""))),
      ),
    ).toEqual([]);
  },
);
