import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { formatFailure, huntRound, lawFiles, parseHuntArguments } from "./law-hunt.ts";
import { repository } from "./repository.ts";

test("reads the number of rounds and parts of paths", () => {
  expect(parseHuntArguments([])).toEqual({ times: 10, filters: [] });
  expect(parseHuntArguments(["packages/data", "--times", "15"])).toEqual({ times: 15, filters: ["packages/data"] });
  for (const wrong of ["0", "-1", "1.5", "many", ""])
    expect(parseHuntArguments([`--times=${wrong}`]), wrong).toMatch(/^--times is .*use: pnpm test:hunt/);
  expect(parseHuntArguments(["--rounds", "3"])).toMatch(/--rounds.*use: pnpm test:hunt/);
});

test("finds laws by their import of fast-check, also through other files, and by their name", () => {
  const files = lawFiles(["packages/compressors", "packages/data/src/hold-out", "packages/gpu-kernels/test/rows"]);
  expect(files).toContain("packages/compressors/test/laws.test.ts");
  expect(files).toContain("packages/data/src/hold-out.laws.test.ts");
  expect(files).toContain("packages/gpu-kernels/test/rows.laws.test.ts");
  expect(lawFiles(["tooling/markdown", "tooling/stages/stages.test.ts"])).toEqual([]);
  expect(lawFiles().length).toBeGreaterThan(250);
});

test("reports the law that fails and its seed, and the command that repeats the failure", async () => {
  // The folder is inside a package that depends on fast-check.
  const folder = mkdtempSync(join(repository, "packages/testing/node_modules/.hunt-"));
  try {
    const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
    const path = (file: string): string => JSON.stringify(join(repository, file));
    write("package.json", `{ "type": "module" }`);
    write(
      "vitest.config.ts",
      `import { JournalReporter } from ${path("tooling/journal-reporter.ts")};
       export default { test: {
         pool: "forks", maxWorkers: 1, include: ["*.test.ts"], exclude: [],
         setupFiles: [${path("packages/testing/src/law-seeds.ts")}],
         reporters: [new JournalReporter(process.env.SKEIN_TEST_JOURNAL)],
       } };`,
    );
    write(
      "odd.test.ts",
      `import fc from "fast-check";
       import { describe, expect, test } from "vitest";
       test("holds", () => fc.assert(fc.property(fc.nat(), (n) => n >= 0)));
       describe("sums", () => {
         test("are below 3 (never)", () => fc.assert(fc.property(fc.nat(9), (n) => expect(n).toBeLessThan(3))));
       });`,
    );
    const file = relative(repository, join(folder, "odd.test.ts"));
    const [failure, ...others] = await huntRound(["odd.test.ts"], 123, folder);
    expect(others).toEqual([]);
    expect(failure).toEqual({
      file,
      law: "sums > are below 3 (never)",
      detail: expect.stringContaining("seed: 123"),
    });
    expect(formatFailure(failure!, 123).split("\n").at(0)).toBe(
      `failed with seed 123: ${file}: sums > are below 3 (never)`,
    );
    expect(formatFailure(failure!, 123).split("\n").at(-1)).toBe(
      `again: SKEIN_LAW_SEED=123 vitest run ${file} -t 'sums.*are below 3 \\(never\\)'`,
    );
    write("odd.test.ts", `import { test } from "vitest";\ntest("holds", () => {});`);
    expect(await huntRound(["odd.test.ts"], 123, folder)).toEqual([]);
    write("odd.test.ts", "this is no module");
    expect(await huntRound(["odd.test.ts"], 123, folder)).toEqual([{ file, detail: expect.any(String) }]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
