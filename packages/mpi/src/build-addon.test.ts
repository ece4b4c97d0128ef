import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { builtAddons, cachedAddon } from "./addon-cache.ts";
import { buildMpiAddon } from "./build-addon.ts";
import { loadMpi } from "./load-addon.ts";
import { openMpi } from "./world.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-mpi-build-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Creates a fake compiler that reports MPICH's version macro, and otherwise runs the given shell commands. */
const fakeCompiler = (then: string): string => {
  const file = join(folder, "mpicxx-fake");
  const header = 'if [ "$1" = "-E" ]; then echo "#define MPICH_VERSION \\"9.8.7\\""; exit 0; fi';
  writeFileSync(file, `#!/bin/sh\n${header}\n${then}\n`);
  chmodSync(file, 0o755);
  return file;
};

const writeAddon = (path: string, seconds: number): string => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "not an addon");
  utimesSync(path, seconds, seconds);
  return path;
};

test("without a compiler, fails with one line that says what to install, and that TCP needs no MPI", async () => {
  const error = (await buildMpiAddon({ compiler: "mpicxx-that-is-not-here", cacheFolder: folder }).catch(
    (reason: unknown) => reason,
  )) as Error;
  expect(error).toMatchObject({ code: "mpi-missing", kind: "environment" });
  expect(error.message).toMatch(/"mpicxx-that-is-not-here".*apt install.*tcp needs no MPI/);
  expect(error.message).not.toContain("\n");
});

test("if the compiler fails, reports its error in one line and leaves no files", async () => {
  const compiler = fakeCompiler(
    'printf "In file included from here\\naddon.cc:1:2: fatal error: no mpi for you\\nmore\\n" >&2; exit 1',
  );
  await expect(buildMpiAddon({ compiler, cacheFolder: join(folder, "cache") })).rejects.toMatchObject({
    code: "mpi-build",
    message: expect.stringMatching(/failed: addon\.cc:1:2: fatal error: no mpi for you; install/) as unknown,
  });
  const [left] = readdirSync(join(folder, "cache"));
  expect(readdirSync(join(folder, "cache", left!))).toEqual([]);
});

test("writes the complete addon to the cache, under the name of its library", async () => {
  const compiler = fakeCompiler('for last in "$@"; do :; done; echo built > "$last"');
  const built = await buildMpiAddon({ compiler, cacheFolder: folder });
  expect(built).toEqual({ file: cachedAddon(folder, "mpich", "9.8.7"), family: "mpich", version: "9.8.7" });
  expect(existsSync(built.file)).toBe(true);
  expect(readdirSync(dirname(built.file))).toEqual(["skein-mpi.node"]);
  expect(builtAddons(folder)).toEqual([built.file]);
});

test("prefers the newest addon, and first the family of the launcher", () => {
  const older = writeAddon(cachedAddon(folder, "open-mpi", "4.1.4"), 1000);
  const newer = writeAddon(cachedAddon(folder, "open-mpi", "4.1.6"), 2000);
  const other = writeAddon(cachedAddon(folder, "mpich", "4.0.2"), 3000);
  writeAddon(other.replace("-napi8-", "-napi8-of-other-sources"), 4000);
  expect(builtAddons(folder)).toEqual([other, newer, older]);
  expect(builtAddons(folder, "open-mpi")).toEqual([newer, older]);
});

test("without an addon for the launcher's MPI, names the command that builds it", () => {
  expect(() => loadMpi({ cacheFolder: folder, environment: {} })).toThrow(/no MPI addon is in .*skein-train mpi build/);
  writeAddon(cachedAddon(folder, "mpich", "4.0.2"), 1000);
  const environment = { OMPI_COMM_WORLD_SIZE: "2" };
  expect(() => loadMpi({ cacheFolder: folder, environment })).toThrow(
    /no MPI addon for open-mpi is in .*skein-train mpi build/,
  );
});

test("rejects a file that is not an addon, or whose library is missing", () => {
  const addon = writeAddon(join(folder, "skein-mpi.node"), 1000);
  expect(() => loadMpi({ addon, environment: {} })).toThrow(/does not load: .*skein-train mpi build/);
  try {
    loadMpi({ addon, environment: {} });
  } catch (error) {
    expect(error).toMatchObject({ code: "mpi-missing" });
    expect((error as Error).message).not.toContain("\n");
  }
});

test("rejects a process without a launcher before it loads anything", async () => {
  await expect(openMpi({ environment: {}, addon: "/nowhere" })).rejects.toMatchObject({ code: "mpi-launcher" });
});
