import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findChromium, openChromium, type ServedPage, servePage, watchErrors } from "@skein/browser";
import { createCpuBackend } from "@skein/cpu-kernels";
import { gatherBatch } from "@skein/data";
import { loadMnist } from "@skein/data/node";
import { cnn, mlp, type Model } from "@skein/models";
import { argmax, evaluate, mapTree, type NdArray, randomKey, readSafetensors, type Tensor } from "@skein/tensor-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

type Browser = Awaited<ReturnType<typeof openChromium>>;
type Page = Awaited<ReturnType<Browser["newPage"]>>;

const text = async (page: Page, id: string): Promise<string> => (await page.locator(`#${id}`).textContent()) ?? "";
const numberIn = async (page: Page, id: string): Promise<number> => Number((await text(page, id)).replaceAll(/[^\d.]/g, ""));

/** Wait until the training that was started has done at least so many steps. */
const waitForSteps = (page: Page, steps: number): Promise<unknown> =>
  page.waitForFunction((least) => Number(document.getElementById("step")!.textContent!.replaceAll(/\D/g, "")) >= least, steps, {
    timeout: 200_000,
  });
/** @throws what the page says when it stops instead. */
const waitForStatus = async (page: Page, status: RegExp): Promise<void> => {
  const reached = page.locator("#status").filter({ hasText: new RegExp(`${status.source}|^Stopped$`) });
  await reached.waitFor({ timeout: 100_000 });
  if (!status.test(await text(page, "status"))) throw new Error(await text(page, "notice"));
};

const parameterShapes = {
  cnn: {
    "conv1.bias": [32],
    "conv1.weight": [3, 3, 1, 32],
    "conv2.bias": [64],
    "conv2.weight": [3, 3, 32, 64],
    "dense1.bias": [128],
    "dense1.weight": [3136, 128],
    "dense2.bias": [10],
    "dense2.weight": [128, 10],
  },
  mlp: { "layers.0.bias": [256], "layers.0.weight": [784, 256], "layers.1.bias": [10], "layers.1.weight": [256, 10] },
};

/** Press the button, and read what arrives. */
const downloadModel = async (page: Page): Promise<ReturnType<typeof readSafetensors> & { readonly name: string }> => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
  return { name: download.suggestedFilename(), ...readSafetensors(await readFile(await download.path())) };
};

const { test: testDigits } = loadMnist({ from: import.meta.url });

/** What a saved model reads in the first `count` test digits, by the CPU backend of this process. */
const readSaved = async (name: keyof typeof parameterShapes, tensors: ReadonlyMap<string, NdArray>, count: number): Promise<number[]> => {
  const model: Model = name === "cnn" ? cnn() : mlp({ sizes: [784, 256, 10] });
  const backend = await createCpuBackend();
  const first = await evaluate((key: Tensor) => model.init(key).params, backend)(randomKey(0));
  const params = mapTree(first, (_: NdArray, path) => tensors.get(path)!);
  const images = gatherBatch(
    testDigits,
    Array.from({ length: count }, (_, i) => i),
  )["inputs"]!;
  const read = (own: unknown, x: Tensor): Tensor => argmax(model.apply(own, {}, x, { train: false })[0]);
  return (await evaluate(read, backend)(params, images)).toNumbers();
};

/** Train, pause, and look at all that the page shows. */
const expectTraining = async (page: Page, model: keyof typeof parameterShapes, steps: number): Promise<void> => {
  await waitForStatus(page, /^Ready$/);
  const accuracyBefore = await numberIn(page, "accuracy");
  const trainTo = async (step: number): Promise<string | null> => {
    await page.getByRole("button", { name: "Start" }).click();
    await waitForSteps(page, step);
    await page.getByRole("button", { name: "Pause" }).click();
    await waitForStatus(page, /^Paused after \d+ steps$/);
    return page.locator("#memory").getAttribute("title");
  };
  const bytesHalfWay = await trainTo(steps / 2);
  expect(bytesHalfWay).toMatch(/^[\d,]{7,} bytes$/);
  expect(await trainTo(steps), "every array of a step is given back").toBe(bytesHalfWay);

  // Ten classes alike cost ln 10 = 2.30 nats, and one in ten is right.
  expect(await numberIn(page, "loss")).toBeLessThan(1.7);
  expect(accuracyBefore).toBeLessThan(35);
  expect(await numberIn(page, "accuracy")).toBeGreaterThan(50);
  expect(await numberIn(page, "steps-per-second")).toBeGreaterThan(0);

  const digits = await page
    .locator("#digits li")
    .evaluateAll((items) => items.map(({ textContent, className }) => `${textContent} ${className}`));
  expect(digits).toHaveLength(60);
  const right = digits.filter((digit) => digit.endsWith("right")).length;
  expect(right).toBeGreaterThan(25);
  expect(await text(page, "digits-summary")).toBe(`${right} of 60 read right`);

  const { name, tensors, metadata } = await downloadModel(page);
  expect(name).toBe(`digits-${model}.safetensors`);
  expect(Object.fromEntries([...tensors].map(([path, { shape }]) => [path, shape]))).toEqual(parameterShapes[model]);
  expect(metadata).toMatchObject({ model, steps: String(await numberIn(page, "step")) });
  const labels = testDigits.fields["labels"]!.bytes;
  const readings = await readSaved(model, tensors, digits.length);
  expect(digits).toEqual(readings.map((digit, i) => (digit === labels[i] ? `${digit} right` : `${digit} ≠ ${labels[i]} wrong`)));
};

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

  test("trains on WebGPU where there is an adapter, and begins anew with another model", async () => {
    const page = await browser.newPage();
    const errors = watchErrors(page);
    await page.goto(`${served.url}?batch=16`);
    const hasAdapter = await page.evaluate(async () => (await navigator.gpu?.requestAdapter()) !== null);
    await expectTraining(page, "cnn", 40);
    expect(await text(page, "backend")).toBe(hasAdapter ? "WebGPU" : "WebAssembly");
    expect(await text(page, "device")).not.toBe("");
    expect(await page.locator("#notice").isVisible()).toBe((await text(page, "notice")) !== "");

    await page.getByLabel("Model").selectOption("dense");
    await waitForStatus(page, /^Ready$/);
    expect(await text(page, "step")).toBe("0");
    expect(await text(page, "parameters")).toBe("203,530");
    await page.getByRole("button", { name: "Start" }).click();
    await waitForSteps(page, 10);
    // Saving while training goes on lets it go on.
    expect((await downloadModel(page)).tensors.size).toBe(4);
    await waitForSteps(page, (await numberIn(page, "step")) + 10);
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
