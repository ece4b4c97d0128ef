import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadModule } from "./load-module.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-module-"));
afterAll(() => rmSync(folder, { recursive: true }));

test.each<[string, string, string | undefined, string]>([
  ["a device", "/dev/zero", undefined, "/dev/zero is no regular file; name a file of JavaScript or TypeScript in data"],
  ["a folder", folder, undefined, "is no regular file; name a file of JavaScript or TypeScript in data.file"],
  [
    "a pointer of Git LFS",
    join(folder, "pointer.ts"),
    "version https://git-lfs.github.com/spec/v1\noid sha256:74541f\nsize 130\n",
    "pointer.ts is a pointer of Git LFS, not the file: run git lfs pull",
  ],
])("%s in place of a module is refused before Node reads it", async (_, file, content, message) => {
  if (content !== undefined) writeFileSync(file, content);
  const loading = loadModule("data", { kind: "module", file, export: "default", options: {} });
  await expect(loading).rejects.toThrow(message);
  await expect(loading).rejects.toMatchObject({ name: "ModuleError" });
});
