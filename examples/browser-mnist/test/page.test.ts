import { join } from "node:path";
import { findChromium, openChromium, type ServedPage, servePage, watchErrors } from "@skein/browser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Browser,
  drawSeven,
  expectTraining,
  numberIn,
  text,
  waitForStatus,
  waitForSteps,
} from "./training-page.ts";

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

  // The convolutional network needs a minute of training on a CPU, so it is tested in `page.full.test.ts`.
  test("trains on WebGPU if the address requests it and there is an adapter, software or not", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(`${served.url}?model=none`); // starts no worker
    const hasAdapter = await page.evaluate(async () => (await navigator.gpu?.requestAdapter()) !== null);
    await page.goto(`${served.url}?model=mlp&batch=32${hasAdapter ? "&backend=webgpu" : ""}`);
    await expectTraining(page, "mlp", 60);
    expect(await text(page, "backend")).toBe(hasAdapter ? "WebGPU" : "WebAssembly");
    expect(await text(page, "device")).not.toBe("");
    expect(await page.locator("#notice").isVisible()).toBe((await text(page, "notice")) !== "");

    expect(errors).toEqual([]);
    await page.close();
  }, 300_000);

  test("trains on the WebAssembly backend if the address requests it, and shows the reason", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(`${served.url}?backend=cpu&model=mlp&batch=32`);
    await expectTraining(page, "mlp", 60);
    expect(await text(page, "backend")).toBe("WebAssembly");
    expect(await page.locator("#notice").innerText()).toBe(
      "The address requests it (backend=cpu). Training runs on the WebAssembly backend instead.",
    );
    expect(errors).toEqual([]);
    await page.close();
  });

  test("falls back to WebAssembly if the browser has no WebGPU, and shows the reason", async () => {
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
    expect(await page.locator("#notice").innerText()).toMatch(
      /^This browser has no WebGPU\. Training runs on the WebAssembly backend/,
    );
    expect(errors).toEqual([]);
    await page.close();
  });

  test("never chooses a software adapter by default, and reads a drawn digit between steps", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(`${served.url}?model=mlp&batch=64`);
    await waitForStatus(page, /^Ready$/);
    const software = await page.evaluate(async () => {
      const info = (await navigator.gpu?.requestAdapter())?.info;
      return (
        info === undefined ||
        info.isFallbackAdapter ||
        /llvmpipe|swiftshader/i.test(`${info.architecture} ${info.device} ${info.description}`)
      );
    });
    expect(await text(page, "backend")).toBe(software ? "WebAssembly" : "WebGPU");
    await page.getByRole("button", { name: "Start" }).click();
    await waitForSteps(page, 60);
    await drawSeven(page);
    await page
      .locator("#drawing-answer")
      .filter({ hasText: /reads a 7/ })
      .waitFor();
    expect(await page.locator("#answers .best").innerText()).toMatch(/^7\s+\d+ %$/);
    await page.getByRole("button", { name: "Clear" }).click();
    expect(await text(page, "drawing-answer")).toMatch(/^Draw a digit/);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("applies new settings only after Reset once training has started, and keeps the focus", async () => {
    const page = await browser.newPage();
    await page.goto(`${served.url}?backend=cpu&model=mlp&batch=32`);
    await waitForStatus(page, /^Ready$/);
    await page.getByLabel("Batch").focus();
    await page.keyboard.press("ArrowDown");
    await waitForStatus(page, /^Ready$/);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("batch");
    await page.getByRole("button", { name: "Start" }).click();
    await waitForSteps(page, 10);
    await page.getByLabel("Batch").focus();
    await page.keyboard.press("ArrowDown");
    await waitForStatus(page, /^Press Reset/);
    await waitForSteps(page, (await numberIn(page, "step")) + 10);
    await page.keyboard.press("ArrowUp");
    await waitForStatus(page, /^Training$/);
    await page.keyboard.press("ArrowDown");
    await page.getByRole("button", { name: "Reset" }).click();
    await waitForStatus(page, /^Ready$/);
    expect([await text(page, "step"), await page.evaluate(() => document.activeElement?.id)]).toEqual(["0", "reset"]);
    await page.close();
  });

  test("trains with two workers, and sends less with compression", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    const sent: number[] = [];
    for (const compression of ["none", "top-k"]) {
      await page.goto(`${served.url}?backend=cpu&model=mlp&batch=32&ranks=2&compression=${compression}`);
      await waitForStatus(page, /^Ready$/);
      await page.getByRole("button", { name: "Start" }).click();
      await waitForSteps(page, 60);
      await page.getByRole("button", { name: "Pause" }).click();
      await waitForStatus(page, /^Paused/);
      sent.push(await numberIn(page, "sent"));
      expect(await numberIn(page, "accuracy")).toBeGreaterThan(40);
    }
    // With two ranks, an all-reduce sends 4 bytes per parameter in each direction; top-k with 1 % sends 8 bytes per
    // entry.
    const kibibytes = (4 * 203_530) / 1024;
    expect(Math.abs(sent[0]! - kibibytes)).toBeLessThan(0.1);
    expect(Math.abs(sent[1]! - 0.02 * kibibytes)).toBeLessThan(0.1);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("trains on one thread if the page is not cross-origin isolated, and shows why two ranks are impossible", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.route(
      ({ pathname }) => pathname === "/",
      async (route) => {
        const response = await route.fetch();
        const { "cross-origin-opener-policy": _, "cross-origin-embedder-policy": __, ...headers } = response.headers();
        await route.fulfill({ response, headers });
      },
    );
    await page.goto(`${served.url}?backend=cpu&model=mlp&ranks=2`);
    await waitForStatus(page, /^Ready$/);
    expect(await text(page, "device")).toContain("one thread, since the page is not cross-origin isolated");
    expect(await page.locator("#notice").innerText()).toMatch(/Training uses one rank: .* no COOP and COEP headers\.$/);
    expect(await page.getByLabel("Ranks").isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Start" }).click();
    await waitForSteps(page, 20);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("rejects an unsupported option in the address and lists the supported ones", async () => {
    const page = await browser.newPage();
    await page.goto(`${served.url}?model=resnet`);
    expect(await page.locator("#notice").innerText()).toContain("model=resnet, but the choices are cnn, mlp");
    await page.close();
  });
});
