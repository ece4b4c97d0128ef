import { appendFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findChromium, openChromium, watchErrors } from "@skein/browser";
import { countValues, histogramOf, HistogramsFile, rangeOf, requestFile } from "@skein/run-files/node";
import { NdArray } from "@skein/tensor-core";
import { startWatch } from "../src/watch-command.ts";
import type { WatchServer } from "../src/watch-server.ts";
import axe from "axe-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { growSampleRun, hostileName, writeSampleRun, writeSampleTrace } from "./sample-runs.ts";

type Browser = Awaited<ReturnType<typeof openChromium>>;
type Page = Awaited<ReturnType<Browser["newPage"]>>;

/** Polls with a long timeout, because a busy machine may be slow. */
const poll = <T>(look: () => Promise<T>) => expect.poll(look, { timeout: 30_000 });

/** Folder for screenshots for visual inspection. Undefined: no screenshots. */
const pictures = process.env["SKEIN_WATCH_PICTURES"];
const adam = { name: "mnist", batch: 64, optimizer: { kind: "adam", beta1: 0.9 } };
const sgd = { name: "mnist", batch: 128, optimizer: { kind: "sgd" } };

describe.skipIf(findChromium() === undefined)("the page of runs in Chromium", () => {
  const root = mkdtempSync(join(tmpdir(), "skein-watch-page-"));
  let server: WatchServer;
  let browser: Browser;
  beforeAll(async () => {
    writeSampleRun(join(root, "mnist/1"), 300, adam);
    [server, browser] = await Promise.all([startWatch(root, 0), openChromium()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(root, { recursive: true });
  });

  const open = async (width = 1300, height = 1000): Promise<{ page: Page; errors: readonly string[] }> => {
    const page = await browser.newPage({ viewport: { width, height } });
    const errors = watchErrors(page);
    await page.goto(server.url);
    await page.getByRole("checkbox", { name: "mnist/1" }).waitFor();
    return { page, errors };
  };
  const row = (page: Page, id: string) =>
    page.getByRole("row").filter({ has: page.getByRole("checkbox", { name: id, exact: true }) });
  const chart = (page: Page, title: string) => page.getByRole("region", { name: title, exact: true });
  /**
   * Returns the number of pixels per color of a chart, excluding background and gray. These pixels belong to the lines.
   */
  const colours = (page: Page, title: string): Promise<number> =>
    chart(page, title)
      .locator("canvas")
      .evaluate((canvas: HTMLCanvasElement) => {
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        const seen = new Map<string, number>();
        for (let i = 0; i < data.length; i += 4) {
          const [r, g, b] = [data[i]! >> 4, data[i + 1]! >> 4, data[i + 2]! >> 4];
          if (data[i + 3]! < 250 || Math.max(r, g, b) - Math.min(r, g, b) < 4) continue;
          seen.set(`${r},${g},${b}`, (seen.get(`${r},${g},${b}`) ?? 0) + 1);
        }
        return [...seen.values()].filter((count) => count > 150).length;
      });
  const faults = async (page: Page): Promise<string[]> => {
    await page.evaluate(axe.source);
    return page.evaluate(async () => {
      const { axe: inPage } = globalThis as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      };
      return (await inPage.run()).violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`,
      );
    });
  };
  const picture = async (page: Page, name: string): Promise<void> => {
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
  };

  test("shows the newest run, updates it, and overlays a new one, whatever its name", async () => {
    const { page, errors } = await open();
    await poll(() => colours(page, "Training loss")).toBe(1);
    expect(await row(page, "mnist/1").innerText()).toMatch(/running.*300.*5\.[0-9]+|running/s);
    growSampleRun(join(root, "mnist/1"), 300, 340);
    await poll(() => row(page, "mnist/1").innerText()).toContain("340");

    writeSampleRun(join(root, hostileName.replaceAll("/", "_")), 200, { ...sgd, [hostileName]: hostileName }, 2);
    writeFileSync(
      join(root, hostileName.replaceAll("/", "_"), "metrics.jsonl"),
      `${JSON.stringify({ type: hostileName, step: 201, [hostileName]: 1 })}\n`,
      { flag: "a" },
    );
    const name = hostileName.replaceAll("/", "_");
    writeFileSync(join(root, name, "provenance.json"), "[".repeat(100_000));
    await poll(() => row(page, name).getByRole("checkbox").isChecked()).toBe(true);
    await poll(() => row(page, name).innerText()).toContain("has a fault");
    await poll(() => colours(page, "Training loss")).toBe(2);

    // Only options that differ between runs are shown.
    const differences = page.getByRole("region", { name: "Differences between their jobs" }).first();
    expect(await differences.getByRole("rowheader").allInnerTexts()).toEqual([
      hostileName,
      "batch",
      "optimizer.beta1",
      "optimizer.kind",
    ]);
    await row(page, name).getByRole("button").click();
    await poll(() => page.getByRole("heading", { name }).count()).toBe(1);
    expect(await page.evaluate(() => (globalThis as { stolen?: number }).stolen)).toBeUndefined();
    expect(await page.locator("img, script:not([src])").count()).toBe(0);
    await picture(page, "hostile");

    await page.getByLabel("filter").fill("optimizer.kind=adam");
    await poll(() => row(page, name).count()).toBe(0);
    await poll(() => colours(page, "Training loss")).toBe(1);

    expect(await faults(page)).toEqual([]);
    expect(errors).toEqual([]);
    await page.getByLabel("filter").fill("");
    await row(page, name).waitFor();
    rmSync(join(root, name), { recursive: true });
    await poll(() => row(page, name).count()).toBe(0);
    await page.close();
  }, 60_000);

  test("works by keyboard alone", { tags: "full" }, async () => {
    const { page, errors } = await open();
    const plot = chart(page, "Training loss").getByRole("application");
    await poll(() => colours(page, "Training loss")).toBe(1);
    await page.getByRole("checkbox", { name: "mnist/1" }).focus();
    await page.keyboard.press("Space");
    await poll(() => page.getByText("No run is selected").count()).toBe(1);
    await page.keyboard.press("Space");
    await plot.waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.getByRole("heading", { name: "mnist/1" }).count()).toBe(1);
    await poll(() => page.getByText("step 100:").count()).toBe(1);
    expect(await page.getByText(/ resume /).count()).toBeGreaterThan(0);
    for (let i = 0; i < 40 && !(await plot.evaluate((element) => element === document.activeElement)); i++)
      await page.keyboard.press("Tab");
    const value = (): Promise<string> => chart(page, "Training loss").locator("b").innerText();
    const last = await value();
    for (let i = 0; i < 30; i++) await page.keyboard.press("ArrowLeft");
    await poll(value).not.toBe(last);
    await page.keyboard.press("+");
    await poll(() => page.getByRole("button", { name: "reset zoom" }).isEnabled()).toBe(true);
    await page.keyboard.press("Escape");
    await poll(value).toBe(last);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await poll(() => chart(page, "Training loss").getByRole("row").count()).toBe(41);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("in light and dark mode and on a phone, all charts fit the width of the page", { tags: "full" }, async () => {
    writeSampleRun(join(root, "mnist/2"), 250, sgd, 2);
    const { page, errors } = await open();
    await page.getByRole("button", { name: "show all", exact: true }).click();
    await poll(() => colours(page, "Training loss")).toBe(2);
    for (const [name, scheme, width] of [
      ["light", "light", 1300],
      ["dark", "dark", 1300],
      ["phone", "dark", 360],
      ["phone-light", "light", 360],
    ] as const) {
      await page.setViewportSize({ width, height: 3600 });
      await page.getByLabel("colours").selectOption(scheme);
      await page.getByLabel("smoothing").fill(name === "dark" ? "0.9" : "0");
      await poll(() => page.locator(".chart-box canvas").count()).toBe(await page.locator(".chart-box").count());
      await page.waitForTimeout(300);
      await picture(page, name);
      expect([name, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([name, width]);
      expect(await faults(page)).toEqual([]);
    }
    expect(errors).toEqual([]);
    await page.close();
  });

  test("zooms all charts by a drag in one, and shows values of all runs under the pointer", {
    tags: "full",
  }, async () => {
    const { page } = await open();
    await poll(() => colours(page, "Training loss")).toBe(1);
    const box = (await chart(page, "Training loss").locator(".u-over").boundingBox())!;
    const names = chart(page, "Samples per second").locator("b");
    const before = await names.first().innerText();
    await page.mouse.move(box.x + 20, box.y + 50);
    await poll(() => names.first().innerText()).not.toBe(before);
    await page.mouse.down();
    await page.mouse.move(box.x + 120, box.y + 50, { steps: 5 });
    await page.mouse.up();
    await page.getByRole("button", { name: "reset zoom" }).click();
    await page.close();
  });

  test("stores its view in the URL: links, back and forward, and invalid URLs", { tags: "full" }, async () => {
    writeSampleRun(join(root, "mnist/2"), 250, sgd, 2);
    const { page, errors } = await open();
    const isShown = (which: Page, id: string): Promise<boolean> => row(which, id).getByRole("checkbox").isChecked();
    const words = (which: Page): Promise<URLSearchParams> =>
      which.evaluate(() => location.hash.slice(1)).then((hash) => new URLSearchParams(hash));
    await page.getByRole("button", { name: "show none" }).click();
    await poll(async () => (await words(page)).getAll("run")).toEqual([""]);
    await row(page, "mnist/2").getByRole("checkbox").check();
    await poll(async () => (await words(page)).getAll("run")).toEqual(["mnist/2"]);
    await page.getByLabel("along").selectOption("time");
    await poll(async () => (await words(page)).get("axis")).toBe("time");
    await page.getByLabel("charts", { exact: true }).fill("held");
    await page.getByLabel("filter").fill("optimizer.kind = sgd");
    await poll(async () => (await words(page)).get("filter")).toBe("optimizer.kind = sgd");

    const link = page.url();
    const other = await browser.newPage({ viewport: { width: 1300, height: 1000 } });
    await other.goto(link);
    await poll(() => isShown(other, "mnist/2")).toBe(true);
    expect(await row(other, "mnist/1").count()).toBe(0);
    expect(await other.getByLabel("along").inputValue()).toBe("time");
    await poll(() => other.locator(".chart-box h3").allInnerTexts()).toEqual(["Held-out loss", "Held-out accuracy"]);
    expect(other.url()).toBe(link);
    await other.goto(`${server.url}#run=nobody&axis=height&smoothing=9&range=2~1&%E0%A4`);
    await other.reload();
    await poll(() => other.getByRole("checkbox", { checked: true }).count()).toBe(1);
    expect(await other.getByLabel("along").inputValue()).toBe("step");
    await other.close();

    await page.goBack();
    await poll(() => page.getByLabel("filter").inputValue()).toBe("");
    await page.goBack();
    await poll(() => page.getByLabel("along").inputValue()).toBe("step");
    await page.goBack();
    await poll(() => isShown(page, "mnist/2")).toBe(false);
    await page.goForward();
    await poll(() => isShown(page, "mnist/2")).toBe(true);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("draws the trace of a run: zoomed by keys, step by step, as numbers, in dark and light mode and on a phone", {
    tags: "full",
  }, async () => {
    writeSampleTrace(join(root, "mnist/1"), 3);
    const { page, errors } = await open();
    await row(page, "mnist/1").getByRole("button").click();
    await page.getByRole("button", { name: "timeline of trace.json" }).click();
    const timeline = page.getByRole("application", { name: "Timeline of trace.json: whole trace" });
    await timeline.waitFor();
    expect(await timeline.locator(".group-name").allTextContents()).toEqual(["rank 0, host:0", "rank 1, host:1"]);
    const figure = page.locator("[data-timeline]");
    await timeline.focus();
    await page.keyboard.press("ArrowRight");
    await poll(() => figure.locator("output").innerText()).toContain("step 1");
    await page.keyboard.press("+");
    await poll(() => figure.getAttribute("data-zoom")).toBe("1.6");
    await page.keyboard.press("0");
    await poll(() => figure.getAttribute("data-zoom")).toBe("1");
    await page.locator(".trace select").selectOption("2");
    await page.getByRole("application", { name: "Timeline of trace.json: step 2" }).waitFor();
    await page.getByText("data table").first().click();
    const table = page.getByRole("region", { name: "timeline, data" });
    await poll(() => table.getByRole("row").filter({ hasText: "fused update" }).count()).toBe(2);
    expect(await table.getByRole("rowheader", { name: `matmul ${hostileName}` }).count()).toBe(2);
    expect(await page.locator("img, script:not([src])").count()).toBe(0);
    for (const [name, scheme, width] of [
      ["timeline-light", "light", 1300],
      ["timeline-dark", "dark", 1300],
      ["timeline-phone", "dark", 360],
    ] as const) {
      await page.setViewportSize({ width, height: 1600 });
      await page.getByLabel("colours").selectOption(scheme);
      await picture(page, name);
      expect([name, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([name, width]);
      expect(await faults(page)).toEqual([]);
    }
    await page.reload();
    await page.getByRole("application", { name: "Timeline of trace.json: whole trace" }).waitFor();
    writeFileSync(join(root, "mnist/1/trace.json"), '[{"ph":"B"}]');
    await page.reload();
    await poll(() => page.getByRole("alert").innerText()).toContain("is a trace that another program has written");
    expect(errors.filter((error) => !error.includes("ERR_ABORTED"))).toEqual([]); // errors of reloads
    await page.close();
  });

  test("takes histograms, of a training run and of a finished one, by keyboard, in all widths and colour schemes", {
    tags: "full",
  }, async () => {
    const folder = join(root, "mnist/1");
    const count = (values: readonly number[]) => {
      const array = NdArray.from(values, [values.length]);
      return histogramOf(countValues(array, rangeOf(array)), rangeOf(array));
    };
    const bell = Array.from({ length: 4000 }, (_, i) => Math.sin(i * 12.9898) + Math.sin(i * 78.233) + Math.sin(i));
    const parameters = [hostileName, ...Array.from({ length: 34 }, (_, i) => `layers.${i}.weight`)].map((path, i) => ({
      path,
      shape: [40, 100],
      weights: count(bell.map((value) => value * (i + 1))),
      ...(i !== 2 && {
        gradients: count([...bell.map((value) => value ** 3 / 1e4), ...(i === 1 ? [Number.NaN] : [])]),
      }),
    }));
    const { page, errors } = await open();
    await row(page, "mnist/1").getByRole("button").click();
    await page.getByText("weights and gradients").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await poll(() => page.getByText("requested; the run answers").count()).toBe(1);
    expect(existsSync(join(folder, requestFile))).toBe(true);
    // Write the response of the run.
    rmSync(join(folder, requestFile));
    new HistogramsFile(folder).record(300, parameters, true);
    appendFileSync(
      join(folder, "metrics.jsonl"),
      `${JSON.stringify({ type: "histograms", step: 300, file: "histograms.jsonl" })}\n`,
    );
    const list = page.locator(".histograms > li");
    await poll(() => list.count()).toBe(30);
    await poll(() => page.getByText("requested; the run answers").count()).toBe(0);
    expect(await page.locator("img, script:not([src])").count()).toBe(0);
    await poll(() =>
      page.getByRole("img", { name: /^gradients of layers\.0\.weight: mean .* 1 not finite$/ }).count(),
    ).toBe(1);
    expect(await list.nth(2).getByRole("img", { name: / of / }).count()).toBe(1);
    for (const [name, scheme, width] of [
      ["histograms-light", "light", 1300],
      ["histograms-dark", "dark", 1300],
      ["histograms-phone", "dark", 360],
    ] as const) {
      await page.setViewportSize({ width, height: 1600 });
      await page.getByLabel("colours").selectOption(scheme);
      await picture(page, name);
      expect([name, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([name, width]);
      expect(await faults(page)).toEqual([]);
    }
    await page.getByRole("button", { name: "show 5 more of 5" }).click();
    await poll(() => list.count()).toBe(35);
    await page.getByLabel("logarithmic counts").check();
    await page.getByRole("searchbox", { name: "parameters" }).fill("ERS.3 weight");
    await poll(() => list.count()).toBe(5); // runs 3, and 30 to 33
    await picture(page, "histograms-logarithmic");
    // Now the run ends before it has responded.
    await page.getByRole("button", { name: "take histograms now" }).click();
    await poll(() => page.getByText("requested; the run answers").count()).toBe(1);
    rmSync(join(folder, requestFile));
    writeFileSync(join(folder, "provenance.json"), '{"ended":{"how":"finished"}}');
    await poll(() => page.getByText("the run ended before it answered").count()).toBe(1);
    await page.getByRole("button", { name: "take histograms of the newest checkpoint" }).click();
    await poll(() => page.getByRole("alert").innerText()).toMatch(/manifest/);
    expect(errors.filter((error) => !error.includes("409"))).toEqual([]);
    rmSync(join(folder, "provenance.json"));
    await page.close();
  });

  test("shows the model's outputs for samples: pictures with labels, and texts as text", { tags: "full" }, async () => {
    const image = { width: 2, height: 2, channels: 3, bytes: Buffer.from([255, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9]) };
    const classes = { kind: "classes", label: 3, probability: 0.9 };
    const texts = { kind: "text", index: 2, prompt: hostileName, truth: "b\nc", continuation: hostileName };
    const lines = [
      { type: "images", step: 100, images: { 0: { ...image, bytes: image.bytes.toString("base64") } } },
      ...[100, 200].map((step) => ({
        type: "samples",
        step,
        samples: [{ ...classes, index: 0, predicted: step / 100 }, { ...classes, index: 1, predicted: 3 }, texts],
      })),
    ];
    writeFileSync(join(root, "mnist/1/samples.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const { page, errors } = await open();
    await row(page, "mnist/1").getByRole("button").click();
    const samples = page.locator(".samples");
    await poll(() => samples.locator("li").first().innerText()).toContain("✗ predicted 2 (90.0 %), is 3");
    expect(await samples.locator("li").nth(1).innerText()).toBe("✓ predicted 3 (90.0 %)");
    expect(await samples.getByText(hostileName).count()).toBe(2);
    expect(await page.locator("img, script:not([src])").count()).toBe(0);
    const red = await samples
      .getByRole("img")
      .evaluate((canvas: HTMLCanvasElement) => [...canvas.getContext("2d")!.getImageData(0, 0, 1, 1).data]);
    expect(red).toEqual([255, 0, 0, 255]);
    await page.getByLabel("after step").selectOption("100");
    await poll(() => samples.locator("li").first().innerText()).toContain("predicted 1");
    await page.setViewportSize({ width: 360, height: 1600 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    expect(await faults(page)).toEqual([]);
    expect(errors).toEqual([]);
    await page.close();
  });

  test("shows trees of inputs and outputs by their paths, on a phone too", { tags: "full" }, async () => {
    const bytes = Buffer.from([255, 0, 0, 0, 255, 0, 9, 9, 9, 9, 9, 9]).toString("base64");
    const image = { width: 2, height: 2, channels: 3, bytes };
    const wave = Array.from({ length: 8 }, (_, i) => Math.sin(i * i));
    const made = {
      "query.embedding": { dtype: "f32", shape: [128], first: wave },
      scores: { dtype: "bf16", shape: [4], first: ["NaN", "Infinity", "-Infinity", 0.5] },
      [hostileName]: { dtype: "f32", shape: [1], first: [1] },
    };
    const given = {
      "query.tokens": { dtype: "i32", shape: [6], first: [50_257, 11, 0, 4, 1_234_567, 2] },
      "query.isQuestion": { dtype: "bool", shape: [], first: [1] },
      "views.0.photo": { dtype: "u8", shape: [2, 2, 3], first: [255, 0, 0, 0, 255, 0, 9, 9] },
      none: { dtype: "f32", shape: [0, 3], first: [] },
    };
    const lines = [
      { type: "images", step: 100, images: { "7.views.0.photo": image, "7.views.1.photo": image, "77": image } },
      {
        type: "samples",
        step: 100,
        samples: [
          { kind: "tree", index: 7, given, made, leftOut: 12 },
          { kind: "tree", index: 9, given, made },
          { kind: "classes", index: 11, label: 3, predicted: -1, probability: "NaN" },
          { kind: "values", index: 12, label: [1, 2], predicted: ["NaN", 2.5] },
        ],
      },
    ];
    writeFileSync(join(root, "mnist/1/samples.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const { page, errors } = await open();
    await row(page, "mnist/1").getByRole("button").click();
    const items = page.locator(".samples > li");
    await poll(() => items.count()).toBe(4);
    const first = items.first();
    expect(await first.getByRole("img").count()).toBe(2);
    await page.getByRole("img", { name: "views.1.photo of held-out sample 7" }).waitFor();
    const itemText = await first.innerText();
    for (const part of [
      "held-out sample 7",
      "50257, 11, 0, 4, 1234567, 2",
      "true",
      "no values",
      "0, 0.841, -0.757, 0.412, -0.288, -0.132, -0.992, -0.954, … 120 more",
      "NaN, Infinity, -Infinity, 0.500",
      hostileName,
      "and 12 more tensors",
    ])
      expect(itemText).toContain(part);
    expect(await items.nth(1).getByRole("img").count()).toBe(0);
    expect(await items.nth(2).innerText()).toBe("✗ no prediction: its logits are not numbers, is 3");
    expect(await items.nth(3).innerText()).toBe("predicted NaN, 2.50; is 1.00, 2.00");
    expect(await page.locator("img, script:not([src])").count()).toBe(0);
    await picture(page, "trees");
    await page.setViewportSize({ width: 360, height: 1600 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    await picture(page, "trees-on-a-phone");
    expect(await faults(page)).toEqual([]);
    expect(errors).toEqual([]);
    await page.close();
  });
});
