import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { findChromium, openChromium, servePage, watchErrors } from "../src/index.ts";

describe.skipIf(findChromium() === undefined)("a page in Chromium", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-page-test-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is bundled from TypeScript, cross-origin isolated, and has WebGPU; its errors are collected", async () => {
    writeFileSync(
      join(folder, "index.html"),
      '<link rel="icon" href="data:," /><script type="module" src="./page.ts"></script>',
    );
    writeFileSync(
      join(folder, "page.ts"),
      "const total: number = new SharedArrayBuffer(8).byteLength;\ndocument.title = `${total} bytes`;\nsetTimeout(() => { throw new Error('on purpose'); });\n",
    );
    const served = await servePage(folder);
    const browser = await openChromium({ adapter: "software" });
    try {
      const page = await browser.newPage();
      const errors = watchErrors(page);
      const uncaught = page.waitForEvent("pageerror");
      await page.goto(served.url);
      expect(await page.title()).toBe("8 bytes");
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
      expect(await page.evaluate(async () => (await navigator.gpu.requestAdapter())?.info.architecture)).toBe(
        "swiftshader",
      );
      await uncaught;
      expect(errors).toEqual(["Error: on purpose"]);
    } finally {
      await browser.close();
      await served.close();
    }
    await expect(fetch(served.url)).rejects.toThrow("fetch failed");
    expect(existsSync(join(folder, "dist"))).toBe(false);
  });

  test("is rejected if its folder has no index.html", async () => {
    const empty = mkdtempSync(join(folder, "empty-"));
    await expect(servePage(empty)).rejects.toThrow(/index\.html/);
  });
});
