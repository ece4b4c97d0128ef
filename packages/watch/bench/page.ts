// Benchmark of the watch page in headless Chromium: frame times during a run of ten thousand steps, and the time until
// 50 MB of metrics are displayed. Run with `npx --yes pnpm@12.21.0 exec node packages/watch/bench/page.ts`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openChromium } from "@skein/browser";
import { sampleLines } from "../test/sample-runs.ts";

const largeBytes = 50e6;
const firstSteps = 10_000;
const takes = 3;

const folder = mkdtempSync(join(tmpdir(), "skein-watch-bench-"));
const [live, large] = [join(folder, "live"), join(folder, "large")];
const launcher = fileURLToPath(new URL("../../../apps/trainer/bin/skein-train.js", import.meta.url));

/** Starts a server with `skein-train watch`. Returns its process and its URL. */
const startServer = async (runs: string): Promise<{ readonly child: ChildProcess; readonly url: string }> => {
  const child = spawn(process.execPath, [launcher, "watch", runs, "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  const [told] = (await once(child.stdout, "data")) as [Buffer];
  return { child, url: (JSON.parse(told.toString()) as { readonly url: string }).url };
};

const isShown = (): boolean => /\d/.test(document.querySelector(".line-names b")?.textContent ?? "");

const browser = await openChromium();
try {
  mkdirSync(join(live, "1"), { recursive: true });
  const metrics = join(live, "1/metrics.jsonl");
  writeFileSync(metrics, sampleLines(0, firstSteps));
  {
    const { child, url } = await startServer(live);
    const page = await browser.newPage({ viewport: { width: 1300, height: 1000 } });
    await page.goto(url);
    await page.waitForFunction(isShown);
    let step = firstSteps;
    const growing = setInterval(() => {
      appendFileSync(metrics, sampleLines(step, step + 2));
      step += 2;
    }, 100);
    const times = await page.evaluate(
      () =>
        new Promise<number[]>((resolve) => {
          const at: number[] = [];
          const frame = (time: number): void => {
            at.push(time);
            if (time - at[0]! < 10_000) requestAnimationFrame(frame);
            else resolve(at);
          };
          requestAnimationFrame(frame);
        }),
    );
    clearInterval(growing);
    const gaps = times.slice(1).map((time, i) => time - times[i]!);
    const shown = await page.getByRole("row").nth(1).innerText();
    const rate = (1000 * gaps.length) / (times.at(-1)! - times[0]!);
    process.stdout.write(
      `live: ${rate.toFixed(1)} frames/s over ${gaps.length} frames, longest ${Math.max(...gaps).toFixed(1)} ms, from step ${firstSteps} to ${/\d{5}/.exec(shown)?.[0]}\n`,
    );
    await page.close();
    child.kill();
  }
  mkdirSync(join(large, "1"), { recursive: true });
  let [text, steps] = ["", 0];
  for (; text.length < largeBytes; steps += 2000) text += sampleLines(steps, steps + 2000);
  writeFileSync(join(large, "1/metrics.jsonl"), text);
  for (let take = 0; take < takes; take++) {
    const { child, url } = await startServer(large);
    for (const which of ["first page", "next page"]) {
      const page = await browser.newPage({ viewport: { width: 1300, height: 1000 } });
      const began = performance.now();
      await page.goto(url);
      await page.waitForFunction(isShown);
      const seconds = (performance.now() - began) / 1000;
      process.stdout.write(`${(text.length / 1e6).toFixed(1)} MB, ${steps} steps, ${which}: ${seconds.toFixed(2)} s\n`);
      await page.close();
    }
    child.kill();
    await once(child, "exit");
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
