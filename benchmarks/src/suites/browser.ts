import { fileURLToPath } from "node:url";
import { openChromium, servePage, type ServedPage } from "@skein/browser";
import { openPageContestant } from "../measure/page-contestant.ts";
import { problems } from "../problems/table.ts";
import type { Row } from "../report/row.ts";
import { benchProblem, type Field } from "./steps.ts";

const contestants = ["skein", "tfjs", "jax-js"] as const;

const root = (name: string): string => fileURLToPath(new URL(`../../pages/${name}`, import.meta.url));

/**
 * Compares Skein with other JavaScript libraries on WebGPU. Each library has a separate page in the same Chromium, on
 * the machine's GPU or on Chromium's software adapter.
 *
 * @param only Names of the problems to run.
 */
export const benchInChromium = async (
  folder: string,
  versions: Record<string, string>,
  only: readonly string[],
): Promise<Row[]> => {
  const pages = new Map<string, ServedPage>();
  const browser = await openChromium();
  try {
    for (const name of contestants) pages.set(name, await servePage(root(name)));
    versions["Chromium"] = browser.version();
    const field: Field = {
      ours: "skein",
      peers: ["tfjs", "jax-js"],
      start: (name) => openPageContestant(browser, name, pages.get(name)!.url),
      targets: Object.fromEntries(only.map((name) => [name, { tfjs: 1, "jax-js": 1 }])),
    };
    const probe = await browser.newPage();
    await probe.goto(pages.get("skein")!.url);
    versions["adapter"] = await probe.evaluate(async () => {
      const info = (await navigator.gpu.requestAdapter())!.info;
      return [info.vendor, info.architecture, info.device, info.description].filter((part) => part !== "").join(" ");
    });
    await probe.close();
    const rows: Row[] = [];
    for (const name of only) {
      process.stderr.write(`  ${name} …\n`);
      rows.push(...(await benchProblem(problems[name]!, folder, versions, field)));
    }
    return rows.map((row) => ({ ...row, benchmark: `${row.benchmark} in Chromium` }));
  } finally {
    await browser.close();
    for (const page of pages.values()) await page.close();
  }
};
