import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findChromium, openChromium, watchErrors } from "@skein/browser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reportPage } from "../src/report-page.ts";
import { sampleReport } from "./sample-report.ts";

type Browser = Awaited<ReturnType<typeof openChromium>>;
type Page = Awaited<ReturnType<Browser["newPage"]>>;

describe.skipIf(findChromium() === undefined)("the page in Chromium, opened from a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "skein-report-"));
  const sample = sampleReport();
  const hostile = `</script><img src=x onerror="window.harmed=1">`;
  const report = {
    ...sample,
    job: hostile,
    operators: sample.operators.map((row) => ({ ...row, scope: `${hostile}/${row.scope}` })),
  };
  let browser: Browser;
  let page: Page;
  let errors: readonly string[];
  beforeAll(async () => {
    const file = join(folder, "report.html");
    writeFileSync(file, reportPage(report));
    browser = await openChromium({ adapter: "software" });
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    errors = watchErrors(page);
    await page.goto(pathToFileURL(file).href);
  });
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true });
  });

  const column = (index: number): Promise<string[]> =>
    page.locator(`#operators tbody tr:visible td:nth-child(${index})`).allInnerTexts();
  const attribute = async (selector: string, name: string): Promise<string> =>
    (await page.locator(selector).first().getAttribute(name)) ?? "";

  test("shows the three slowest operators, exposed communication and the advice without scrolling", async () => {
    expect(await page.locator("h1").innerText()).toBe(hostile);
    for (const what of [".slowest li:nth-child(3)", ".tile.k-exposed", ".advice li:first-child", ".stacked-bar"]) {
      const box = (await page.locator(what).boundingBox())!;
      expect(box.y + box.height, what).toBeLessThanOrEqual(800);
    }
  });

  test("sorts a column both ways, numbers as numbers, and filters by words and phase", async () => {
    const heading = page.locator("#operators th").nth(4);
    await heading.getByRole("button").click();
    const falling = (await column(5)).map(Number);
    expect(falling).toEqual(falling.toSorted((a, b) => b - a));
    expect(await heading.getAttribute("aria-sort")).toBe("descending");
    await heading.getByRole("button").press("Enter");
    expect((await column(5)).map(Number)).toEqual(falling.toReversed().toSorted((a, b) => a - b));
    await page.getByRole("button", { name: "operator", exact: true }).click();
    expect((await column(1))[0]).toBe("add");
    await page.getByLabel("Words").fill("MATMUL block-1");
    await page.getByRole("combobox", { name: "Phase", exact: true }).selectOption("backward");
    expect(new Set(await column(3))).toEqual(new Set(["backward"]));
    expect(await page.locator("[data-counts=operators]").innerText()).toBe(
      `${(await column(1)).length} of ${report.operators.length + 2}`,
    );
    expect(await column(1)).toEqual(["matmul", "matmul"]);
    await page.getByLabel("Words").fill("");
    await page.getByRole("combobox", { name: "Phase" }).selectOption("outside");
    expect((await column(1)).toSorted()).toEqual(["between kernels", "waiting for communication"]);
    await page.getByRole("combobox", { name: "Phase" }).selectOption("");
    const shares = (await column(7)).map(Number);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, 0);
  });

  test("zooms and pans the timeline by wheel, buttons, drag and keys, and describes the span under the pointer", async () => {
    const timeline = page.locator("svg.timeline");
    const view = async (): Promise<number[]> => (await attribute("svg.track", "viewBox")).split(" ").map(Number);
    await timeline.scrollIntoViewIfNeeded();
    const whole = await view();
    const box = (await timeline.boundingBox())!;
    const track = { x: box.x + 0.25 * box.width, y: box.y + 60 };
    await page.mouse.move(track.x, track.y);
    expect(await page.locator(".tip").innerText()).toMatch(/^compute: \S+ .*; [\d.]+ [µm]s from [\d.]+ ms$/);
    const scrolled = await page.evaluate(() => scrollY);
    await page.mouse.click(track.x, track.y);
    await page.mouse.wheel(0, -300);
    await expect.poll(async () => (await view())[2]).toBeLessThan(0.7 * whole[2]!);
    expect(await page.evaluate(() => scrollY)).toBe(scrolled);
    const [x, , width] = await view();
    // Zooming does not move the span under the pointer.
    expect(x! + 0.25 * width!).toBeCloseTo(0.25 * whole[2]!, -5);
    await page.mouse.down();
    await page.mouse.move(track.x + 100, track.y, { steps: 3 });
    await page.mouse.up();
    expect((await view())[0]).toBeLessThan(x!);
    await page.getByRole("button", { name: "zoom in" }).click();
    expect((await view())[2]).toBeLessThan(width!);
    await page.getByRole("button", { name: "show the whole step" }).click();
    expect(await view()).toEqual(whole);
    await timeline.focus();
    for (const key of ["ArrowRight", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    expect(await page.locator("[data-timeline] output").innerText()).toContain("collectives: all-reduce bucket-");
    expect((await view())[2]).toBeLessThan(0.5 * whole[2]!);
    await page.keyboard.press("0");
    expect(await view()).toEqual(whole);
  });

  test("opens a part of the flame chart by click and by key, and goes back", async () => {
    const flame = page.locator("figure.separate svg.flame");
    const cell = flame.locator("svg.cell", { hasText: "backward" }).first();
    const width = async (): Promise<number> => Number.parseFloat((await cell.getAttribute("width")) ?? "");
    const before = await width();
    expect(before).toBeLessThan(80);
    await cell.click();
    expect(await width()).toBe(100);
    expect(await page.locator("figure.separate .trail button").allInnerTexts()).toEqual(["step", "backward"]);
    await page.locator("figure.separate .trail button").first().click();
    expect(await width()).toBe(before);
    await flame.locator("svg.cell").first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await width()).toBe(100);
    await page.getByLabel("combined").check();
    expect([await flame.isVisible(), await page.locator("figure.combined svg.flame").isVisible()]).toEqual([
      false,
      true,
    ]);
  });

  test("executes nothing from names in the report, and reports no error", async () => {
    expect(await page.evaluate(() => [document.images.length, "harmed" in window])).toEqual([0, false]);
    expect(errors).toEqual([]);
  });
});
