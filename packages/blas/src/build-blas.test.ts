import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { completeBuilds, cachedFolder, filesIn } from "./blas-cache.ts";
import { buildBlas } from "./build-blas.ts";
import { measuredKernels } from "./measured-kernels.ts";
import { findBlas, openBlas } from "./open-blas.ts";
import { surveyBlas } from "./survey-blas.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-blas-build-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const facts = { family: "OpenBLAS", version: "0.3.21", core: "" };
const writeBuild = (at: string, seconds: number): ReturnType<typeof filesIn> => {
  const files = filesIn(at);
  mkdirSync(at, { recursive: true });
  for (const file of Object.values(files) as string[]) {
    writeFileSync(file, "neither an addon nor a table");
    utimesSync(file, seconds, seconds);
  }
  return files;
};

test("reports a missing compiler in one line, with packages to install and the note that a BLAS is optional", async () => {
  const error = (await buildBlas({ compiler: "g++-that-is-not-here", cacheFolder: folder }).catch(
    (reason: unknown) => reason,
  )) as Error;
  expect(error).toMatchObject({ code: "blas-missing", kind: "environment" });
  expect(error.message).toMatch(/"g\+\+-that-is-not-here".*--compiler.*apt install.*WebAssembly computes without one/);
  expect(error.message).not.toContain("\n");
});

test("reports a compiler error in one line, and leaves no files", async () => {
  const compiler = join(folder, "g++-fake");
  writeFileSync(
    compiler,
    '#!/bin/sh\nprintf "In file included\\naddon.cc:1:2: fatal error: node_api.h: No such file\\nmore\\n" >&2; exit 1\n',
  );
  chmodSync(compiler, 0o755);
  const cacheFolder = join(folder, "cache");
  await expect(buildBlas({ compiler, cacheFolder })).rejects.toMatchObject({
    code: "blas-build",
    message: expect.stringMatching(
      /failed: addon\.cc:1:2: fatal error: node_api\.h: No such file; install a C\+\+17 compiler/,
    ) as unknown,
  });
  expect(readdirSync(cacheFolder)).toEqual([]);
});

test("finds the newest complete build of the current sources", () => {
  const older = writeBuild(cachedFolder(folder, facts), 1000);
  const newer = writeBuild(cachedFolder(folder, { ...facts, version: "0.3.30" }), 2000);
  rmSync(writeBuild(cachedFolder(folder, { ...facts, version: "0.3.31" }), 3000).table);
  writeBuild(`${dirname(newer.addon)}-of-other-sources`, 4000);
  expect(completeBuilds(folder)).toEqual([newer, older]);
  expect(findBlas({}, folder)).toEqual(newer);
  expect(findBlas({ SKEIN_BLAS: dirname(older.addon) }, folder)).toEqual(older);
  expect(findBlas({}, join(folder, "nothing"))).toBeUndefined();
});

test("rejects a SKEIN_BLAS folder without files", () => {
  expect(() => findBlas({ SKEIN_BLAS: folder }, folder)).toThrow(/SKEIN_BLAS names .*skein-train blas build --output/);
  expect(surveyBlas({ SKEIN_BLAS: folder })).toMatchObject({
    state: "broken",
    reason: expect.stringMatching(/SKEIN_BLAS names/) as unknown,
  });
  expect(surveyBlas({ XDG_CACHE_HOME: folder })).toMatchObject({ state: "not-built" });
});

const kernels = measuredKernels.filter((_, i) => i % 97 === 0);

test("finds a build, chooses by its measurements, and rejects another library", async (context) => {
  const built = await buildBlas({ cacheFolder: folder, kernels }).catch((error: Error & { code?: string }) => {
    if (error.code !== "blas-missing") throw error;
    return error.message;
  });
  if (typeof built === "string") return context.skip(built);
  const { library, concurrent, measured, faster, ...files } = built;
  expect(findBlas({}, folder)).toEqual(files);
  expect(readdirSync(folder)).toHaveLength(1);
  expect(existsSync(files.addon)).toBe(true);
  const table = JSON.parse(readFileSync(files.table, "utf8")) as {
    library: { version: string };
    shapes: { op: string }[];
  };
  expect(table.shapes.map(({ op }) => op)).toEqual(kernels.map(({ op }) => op));
  expect(measured).toBe(kernels.length);
  expect(faster).toBeLessThanOrEqual(measured);
  expect(openBlas(files).identity).toContain(library);
  expect(concurrent || openBlas(files).sliceRows === undefined).toBe(true); // slices need concurrency

  writeFileSync(files.table, JSON.stringify({ ...table, library: { ...table.library, version: "0.0.1" } }));
  expect(() => openBlas(files)).toThrow(/was measured with \S+ 0\.0\.1, but .* is now .*skein-train blas build/);
  writeFileSync(files.table, JSON.stringify({ ...table, library: { ...table.library, name: "libm.so.6" } }));
  expect(() => openBlas(files)).toThrow(/the BLAS libm\.so\.6 cannot be used: .*is not OpenBLAS, BLIS or MKL/);
});

test("reports the loader's reason for a missing library", async (context) => {
  const error = (await buildBlas({ cacheFolder: folder, kernels, library: "libno-such-blas.so" }).catch(
    (reason: unknown) => reason,
  )) as Error;
  if (/C\+\+ compiler/.test(error.message)) return context.skip(error.message);
  expect(error).toMatchObject({
    code: "blas-missing",
    message: expect.stringMatching(/libno-such-blas\.so.*cannot open/) as unknown,
  });
});
