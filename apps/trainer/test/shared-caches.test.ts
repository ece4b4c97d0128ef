import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startWith } from "./cli.ts";

const root = mkdtempSync(join(tmpdir(), "skein-caches-"));
afterAll(() => rmSync(root, { recursive: true }));

test.skipIf(process.platform === "win32")(
  "a cache writable by others is neither read nor written, with one warning",
  async () => {
    const shared = join(root, "shared");
    mkdirSync(join(shared, "compiled"), { recursive: true });
    chmodSync(shared, 0o777);
    const env = { SKEIN_CACHE_DIR: shared, NODE_COMPILE_CACHE: "" };
    const { code, stderr } = await startWith({ env }, root, "schema").ended;
    expect([code, stderr]).toEqual([
      0,
      `the cache ${join(shared, "compiled")} is not used, since ${shared} can be written by others (mode 0777); change owner and mode (chmod go-w), or name a folder of your own\n`,
    ]);
    expect(readdirSync(join(shared, "compiled"))).toEqual([]);
  },
);
