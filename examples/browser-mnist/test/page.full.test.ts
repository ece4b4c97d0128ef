import { join } from "node:path";
import { findChromium, openChromium, servePage, watchErrors } from "@skein/browser";
import { expect, test } from "vitest";
import { downloadModel, expectTraining, numberIn, text, waitForStatus, waitForSteps } from "./training-page.ts";

test.skipIf(findChromium() === undefined)(
  "trains the convolutional network on WebGPU, and restarts with another model",
  async () => {
    const [served, browser] = await Promise.all([servePage(join(import.meta.dirname, "..")), openChromium()]);
    try {
      const page = await browser.newPage();
      const errors = watchErrors(page);
      await page.goto(`${served.url}?backend=webgpu&batch=16`);
      await expectTraining(page, "cnn", 40);
      await page.getByLabel("Model").selectOption("dense");
      await waitForStatus(page, /^Press Reset/);
      await page.getByRole("button", { name: "Reset" }).click();
      await waitForStatus(page, /^Ready$/);
      expect(await text(page, "step")).toBe("0");
      expect(await text(page, "parameters")).toBe("203,530");
      await page.getByRole("button", { name: "Start" }).click();
      await waitForSteps(page, 10);
      // Training continues after the model was saved.
      expect((await downloadModel(page)).tensors.size).toBe(4);
      await waitForSteps(page, (await numberIn(page, "step")) + 10);
      expect(errors).toEqual([]);
    } finally {
      await browser.close();
      await served.close();
    }
  },
  300_000,
);
