import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { AddonSources, builtFolders } from "./addon-cache.ts";
import { otherWriters, warnAboutCache } from "./private-path.ts";

describe.skipIf(process.platform === "win32")("write access of other users", () => {
  let root: string;
  let folder: string;
  let file: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "skein-private-"));
    folder = join(root, "above", "cache");
    file = join(folder, "addon.node");
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    writeFileSync(file, "", { mode: 0o644 });
  });
  afterEach(() => rmSync(root, { recursive: true }));

  test("is absent in a folder of this user, also below a sticky folder, and for a missing file", () => {
    expect(otherWriters(file)).toBeUndefined();
    chmodSync(join(root, "above"), 0o1777);
    expect(otherWriters(file)).toBeUndefined();
    expect(otherWriters(join(folder, "not", "there"))).toBeUndefined();
  });

  test.each([
    ["the file", "above/cache/addon.node", 0o666],
    ["its folder", "above/cache", 0o777],
    ["its folder, with the sticky bit: they may add files", "above/cache", 0o1777],
    ["a folder above", "above", 0o757],
  ])("is detected by the mode of %s", (_, name, mode) => {
    chmodSync(join(root, name), mode);
    const asked = name === "above/cache" ? folder : file;
    expect(otherWriters(asked)).toBe(
      `${join(root, name)} can be written by others (mode ${mode.toString(8).padStart(4, "0")})`,
    );
  });

  test("is detected at the target of a link", () => {
    const link = join(root, "link");
    chmodSync(join(root, "above"), 0o777);
    symlinkSync(folder, link);
    expect(otherWriters(link)).toContain("above can be written by others");
  });

  test("prevents the loading of a build", () => {
    const sources = new AddonSources(pathToFileURL(`${folder}/`));
    const built = join(root, "above", `openblas-${sources.key()}`);
    mkdirSync(built);
    writeFileSync(join(built, "table.json"), "");
    expect(builtFolders(join(root, "above"), sources, "table.json")).toEqual([built]);
    chmodSync(join(built, "table.json"), 0o666);
    vi.stubEnv("SKEIN_CACHE_REMARK", "1");
    expect(builtFolders(join(root, "above"), sources, "table.json")).toEqual([]);
    vi.unstubAllEnvs();
  });

  test.runIf(process.getuid?.() === 0)("is detected by the owner, and by a group that is not a user's own", () => {
    chmodSync(folder, 0o775);
    expect(otherWriters(folder)).toContain("(mode 0775)");
    chmodSync(folder, 0o755);
    chownSync(join(root, "above"), 12_345, 12_345);
    expect(otherWriters(file)).toBe(`${join(root, "above")} belongs to user 12345`);
  });
});

test("warns once that a cache is not used", () => {
  vi.stubEnv("SKEIN_CACHE_REMARK", undefined);
  const lines: string[] = [];
  for (const name of ["a", "b"]) warnAboutCache(`the cache ${name}`, "f belongs to user 1", (line) => lines.push(line));
  vi.unstubAllEnvs();
  expect(lines).toEqual([expect.stringContaining("the cache a is not used, since f belongs to user 1; ")]);
});
