import { join } from "node:path";
import { findChromium, openChromium, type ServedPage, servePage, watchErrors } from "@skein/browser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Browser, expectTraining, text, waitForStatus } from "./training-page.ts";

describe.skipIf(findChromium() === undefined)("the page in Chromium", () => {
  let served: ServedPage;
  let browser: Browser;
  beforeAll(async () => {
    [served, browser] = await Promise.all([servePage(join(import.meta.dirname, "..")), openChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.close();
  });

  // The convolutional network takes a minute to learn something on a processor: that is in `page.full.test.ts`.
  test("trains on WebGPU where there is an adapter", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(`${served.url}?model=mlp&batch=32`);
    const hasAdapter = await page.evaluate(async () => (await navigator.gpu?.requestAdapter()) !== null);
    await expectTraining(page, "mlp", 60);
    expect(await text(page, "backend")).toBe(hasAdapter ? "WebGPU" : "WebAssembly");
    expect(await text(page, "device")).not.toBe("");
    expect(await page.locator("#notice").isVisible()).toBe((await text(page, "notice")) !== "");

    expect(errors).toEqual([]);
    await page.close();
  }, 300_000);

  test("trains on the WebAssembly backend when the address asks for it, and says so", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(`${served.url}?backend=cpu&model=mlp&batch=32`);
    await expectTraining(page, "mlp", 60);
    expect(await text(page, "backend")).toBe("WebAssembly");
    expect(await page.locator("#notice").innerText()).toBe(
      "The address asks for it (backend=cpu). Training runs on the WebAssembly backend instead.",
    );
    expect(errors).toEqual([]);
    await page.close();
  });

  test("falls back to WebAssembly where the browser has no WebGPU, and says why", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.addInitScript("delete Navigator.prototype.gpu");
    await page.route("**/worker-*.js", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: `delete WorkerNavigator.prototype.gpu;\n${await response.text()}` });
    });
    await page.goto(`${served.url}?model=mlp`);
    await waitForStatus(page, /^Ready$/);
    expect(await text(page, "backend")).toBe("WebAssembly");
    expect(await page.locator("#notice").innerText()).toMatch(/^This browser has no WebGPU\. Training runs on the WebAssembly backend/);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("says what is missing where neither backend runs: a page that is not cross-origin isolated", async () => {
    const page = await browser.newPage();
    await page.route(
      ({ pathname }) => pathname === "/",
      async (route) => {
        const response = await route.fetch();
        const { "cross-origin-opener-policy": _, "cross-origin-embedder-policy": __, ...headers } = response.headers();
        await route.fulfill({ response, headers });
      },
    );
    await page.goto(`${served.url}?backend=cpu`);
    await waitForStatus(page, /^Stopped$/);
    expect(await page.locator("#notice").innerText()).toMatch(/WebAssembly threads are missing here: .* COOP\/COEP/);
    expect(await page.getByRole("button", { name: "Start" }).isDisabled()).toBe(true);
    await page.close();
  });

  test("an address that asks for what is not offered is answered with what is", async () => {
    const page = await browser.newPage();
    await page.goto(`${served.url}?model=resnet`);
    expect(await page.locator("#notice").innerText()).toContain("model=resnet, but it can only be cnn, mlp");
    await page.close();
  });
});
