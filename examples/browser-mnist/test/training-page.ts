import { readFile } from "node:fs/promises";
import type { openChromium } from "@skein/browser";
import { createCpuBackend } from "@skein/cpu-kernels";
import { gatherBatch } from "@skein/data";
import { loadMnist } from "@skein/data/node";
import { cnn, mlp, type Model } from "@skein/models";
import { argmax, evaluate, mapTree, type NdArray, randomKey, readSafetensors, type Tensor } from "@skein/tensor-core";
import { expect } from "vitest";

export type Browser = Awaited<ReturnType<typeof openChromium>>;
export type Page = Awaited<ReturnType<Browser["newPage"]>>;

export const text = async (page: Page, id: string): Promise<string> =>
  (await page.locator(`#${id}`).textContent()) ?? "";
export const numberIn = async (page: Page, id: string): Promise<number> =>
  Number((await text(page, id)).replaceAll(/[^\d.]/g, ""));

/** Waits until the training has completed at least `steps` steps. */
export const waitForSteps = (page: Page, steps: number): Promise<unknown> =>
  page.waitForFunction(
    (least) => Number(document.getElementById("step")!.textContent!.replaceAll(/\D/g, "")) >= least,
    steps,
    {
      timeout: 200_000,
    },
  );
/** Waits for a status. @throws the error message of the page if the page stops. */
export const waitForStatus = async (page: Page, status: RegExp): Promise<void> => {
  const reached = page.locator("#status").filter({ hasText: new RegExp(`${status.source}|^Stopped$`) });
  await reached.waitFor({ timeout: 100_000 });
  if (!status.test(await text(page, "status"))) throw new Error(await text(page, "notice"));
};

/** Draws a seven with the mouse. */
export const drawSeven = async (page: Page): Promise<void> => {
  await page.locator("#drawing").scrollIntoViewIfNeeded();
  const { x, y, width, height } = (await page.locator("#drawing").boundingBox())!;
  const corners = [
    [0.3, 0.25],
    [0.7, 0.25],
    [0.62, 0.45],
    [0.45, 0.85],
  ] as const;
  for (const [i, [across, down]] of corners.entries()) {
    await page.mouse.move(x + across * width, y + down * height, { steps: 4 });
    if (i === 0) await page.mouse.down();
  }
  await page.mouse.up();
};

type ModelName = "cnn" | "mlp";

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

/** Presses the download button and reads the downloaded file. */
export const downloadModel = async (
  page: Page,
): Promise<ReturnType<typeof readSafetensors> & { readonly name: string }> => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
  return { name: download.suggestedFilename(), ...readSafetensors(await readFile(await download.path())) };
};

const { test: testDigits } = loadMnist({ from: import.meta.url });

/**
 * Returns a saved model's predictions for the first `count` test digits, computed on the CPU backend of this process.
 */
const readSaved = async (name: ModelName, tensors: ReadonlyMap<string, NdArray>, count: number): Promise<number[]> => {
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

/** Trains, pauses, and checks all values shown on the page. */
export const expectTraining = async (page: Page, model: ModelName, steps: number): Promise<void> => {
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
  expect(await trainTo(steps), "every array of a step is freed").toBe(bytesHalfWay);

  // Ten equally likely classes give a loss of ln 10 = 2.30 nats and an accuracy of 10 %.
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
  expect(digits).toEqual(
    readings.map((digit, i) => (digit === labels[i] ? `${digit} right` : `${digit} ≠ ${labels[i]} wrong`)),
  );
};
