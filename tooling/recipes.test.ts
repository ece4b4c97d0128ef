import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./repository.ts";

/** Existing example of a recipe: its name, and its identifiers in the code. */
interface Example {
  readonly name: string;
  readonly identifiers: readonly string[];
}

/** A recipe in CONTRIBUTING.md. Paths contain the placeholders NAME and FAMILY. */
interface Recipe {
  readonly title: string;
  readonly examples: readonly Example[];
  readonly paths: readonly string[];
}

const files: readonly string[] = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: repository,
  encoding: "utf8",
}).split("\n");

const textOf = (path: string): string => readFileSync(join(repository, path), "utf8");

const recipesOf = (page: string): readonly Recipe[] =>
  page
    .split(/^### (?=Add )/m)
    .slice(1)
    .map((section) => {
      const [title] = section.split("\n", 1);
      const [, listed = ""] = /^Examples?: (.*)\.$/m.exec(section) ?? [];
      return {
        title: title!,
        examples: [...listed.matchAll(/`([^`]+)`(?: \(([^)]*)\))?/g)].map(([, name, identifiers = ""]) => ({
          name: name!,
          identifiers: [...identifiers.matchAll(/`(\w+)`/g)].map(([, identifier]) => identifier!),
        })),
        paths: [...section.matchAll(/`((?:apps|benchmarks|docs|packages|tooling)\/[^`\s]+)`/g)].map(
          ([, path]) => path!,
        ),
      };
    });

const recipes = recipesOf(textOf("CONTRIBUTING.md"));

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Returns a pattern for the files of a path in a recipe: the file itself, or all files in the folder. */
const filePattern = (path: string, { name }: Example): RegExp =>
  new RegExp(`^${escaped(path).replaceAll("NAME", escaped(name)).replaceAll("FAMILY", "[^/]+")}(?:$|/)`);

/** Matches text that registers an example: its name in quotes or as a key, or one of its identifiers. */
const mention = ({ name, identifiers }: Example): RegExp => {
  const alone = (word: string): string => `(?<![\\w-])${escaped(word)}(?![\\w-])`;
  return new RegExp(
    [`["'\`]${escaped(name)}["'\`]`, `(?<![\\w-])${escaped(name)}:`, ...identifiers.map(alone)].join("|"),
  );
};

/** Examples named by common words. For these examples, a search for the name would find unrelated files. */
const commonWords: readonly string[] = ["text"];

/** Files that mention an example although a newcomer need not edit them, by example name. */
const others: { readonly [example: string]: readonly (readonly [file: string, reason: string])[] } = {
  cumsum: [["packages/cpu-kernels/README.md", "prose about kernels that threads do not share"]],
  qsgd: [
    ["benchmarks/src/slow-links/methods.ts", "a selection of compressors"],
    ["packages/compressors/src/phases.ts", "the example of a doc comment"],
    ["docs/guides/which-compressor.md", "results of a benchmark of all compressors"],
  ],
  lags: [
    ["apps/profiler/src/plan/search.ts", "a rule for one planner"],
    ["apps/profiler/src/predict/candidates.ts", "a selection of settings"],
    ["benchmarks/src/convergence/settings.ts", "the compressor of the same name"],
    ["benchmarks/src/slow-links/methods.ts", "a selection of methods"],
  ],
  adamw: [
    ["apps/trainer/src/import-model/import-job.ts", "the optimizer of jobs for imported models"],
    ["benchmarks/src/convergence/models.ts", "the optimizer of a benchmark"],
    ["benchmarks/src/moe/contestants.ts", "the optimizer of a benchmark"],
    ["packages/tensor-core/src/did-you-mean.ts", "the example of a doc comment"],
  ],
  "duplicate-free": [["benchmarks/src/moe/layer-page.ts", "a claim about one dispatcher"]],
  idx: [
    ["packages/data/src/node/read-idx.ts", "a part of the example"],
    ["packages/tensor-core/src/foreign-content.ts", "recognizes the format of a file"],
  ],
  cnn: [
    ["benchmarks/src/convergence/models.ts", "the model of a benchmark"],
    ["benchmarks/src/second-order/links-plan.ts", "the model of a benchmark"],
    ["benchmarks/src/second-order/methods.ts", "the model of a benchmark"],
    ["benchmarks/src/second-order/tasks.ts", "the model of a benchmark"],
    ["benchmarks/src/slow-links/models.ts", "the model of a benchmark"],
    ["docs/data-flow.md", "follows one model through a step"],
  ],
  vit: [
    ["packages/models/README.md", "the model of the same name"],
    ["packages/models/src/vit.ts", "the model of the same name"],
  ],
};

/**
 * Whether a recipe must name a file that mentions its example. True for source and documentation, except tests,
 * benchmark results and generated pages.
 */
const isSource = (path: string): boolean =>
  /^(apps|benchmarks|docs|packages|tooling)\/.*\.(ts|tsx|md)$/.test(path) &&
  !/\.test\.ts$|\/(test|bench|templates)\/|^docs\/(benchmarks\/|experiments\.md|job-reference\.md)/.test(path);

const sources: readonly (readonly [path: string, text: string])[] = files
  .filter((path) => isSource(path) && path !== "tooling/recipes.test.ts")
  .map((path) => [path, textOf(path)]);

test("every recipe names an example, and files that exist for the example", () => {
  expect(recipes.length).toBeGreaterThan(15);
  const faults = recipes.flatMap(({ title, examples, paths }) => {
    if (examples.length === 0 || paths.length === 0) return [`${title}: names no example or no file`];
    return examples.flatMap((example) => {
      const mentioned = mention(example);
      return paths
        .filter((path) => {
          const pattern = filePattern(path, example);
          const named = files.filter((file) => pattern.test(file));
          return path.includes("FAMILY") ? !named.some((file) => mentioned.test(textOf(file))) : named.length === 0;
        })
        .map((path) => `${title}: no file ${path} for ${example.name}`);
    });
  });
  expect(faults).toEqual([]);
});

/** Returns the files that mention an example and are missing in all recipes with this example. */
const unnamedFiles = (name: string): readonly string[] => {
  const own = recipes.flatMap(({ examples, paths }) =>
    examples.filter((example) => example.name === name).map((example) => ({ example, paths })),
  );
  const mentioned = own.map(({ example }) => mention(example));
  const named = own.flatMap(({ example, paths }) => paths.map((path) => filePattern(path, example)));
  return sources
    .filter(([path, text]) => mentioned.some((each) => each.test(text)) && !named.some((each) => each.test(path)))
    .map(([path]) => path);
};

test("no other file mentions an example, except files that a newcomer does not need", () => {
  const names = new Set(recipes.flatMap(({ examples }) => examples.map(({ name }) => name)));
  for (const name of names)
    if (!commonWords.includes(name))
      expect(unnamedFiles(name), name).toEqual((others[name] ?? []).map(([file]) => file).toSorted());
});
