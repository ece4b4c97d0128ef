import { join } from "node:path";
import { findChromium, openChromium, servePage } from "@skein/browser";
import { type ConformanceCase, conformanceCases } from "@skein/testing";
import { afterAll, describe, test } from "vitest";
import type { ConformanceWorker } from "./browser/conformance-worker.ts";

// Names that the worker defines. Functions passed to `evaluate` run in the worker.
declare const openBackend: ConformanceWorker["openBackend"];
declare const checkRow: ConformanceWorker["checkRow"];

/**
 * Number of browsers that share the rows. On a CPU, nearly all of the time is spent compiling shaders, and each
 * SwiftShader process compiles one shader at a time. Must be at most five, the number of rows that vitest runs
 * concurrently.
 */
const numBrowsers = 2;

interface Checker {
  /** Checks one row of the conformance table. @returns the error message of the row, or undefined if the row passes. */
  checkRow(index: number): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens a browser with a page whose worker has opened the backend. Undefined if there is no adapter. */
const openChecker = async (url: string): Promise<Checker | undefined> => {
  const browser = await openChromium();
  const page = await browser.newPage();
  const workerStarts = page.waitForEvent("worker");
  await page.goto(url);
  if (!(await page.evaluate(async () => Boolean(await navigator.gpu?.requestAdapter())))) {
    await browser.close();
    return undefined;
  }
  const worker = await workerStarts;
  const adapter = await worker.evaluate(() => openBackend());
  return {
    checkRow: async (index) => {
      const failure = await worker.evaluate((row) => checkRow(row), index);
      return failure && `${failure} (Chromium, ${adapter})`;
    },
    close: () => browser.close(),
  };
};

const openCheckers = async (): Promise<Checker[]> => {
  if (findChromium() === undefined) return [];
  const served = await servePage(join(import.meta.dirname, "browser"));
  try {
    const opened = await Promise.all(Array.from({ length: numBrowsers }, () => openChecker(served.url)));
    return opened.filter((checker) => checker !== undefined);
  } finally {
    await served.close();
  }
};

/** Returns a function that checks a row on an idle checker. */
const sharing = (checkers: readonly Checker[]): ((index: number) => Promise<string | undefined>) => {
  const free = [...checkers];
  const waiting: ((checker: Checker) => void)[] = [];
  return async (index) => {
    const checker = free.pop() ?? (await new Promise<Checker>((resolve) => waiting.push(resolve)));
    try {
      return await checker.checkRow(index);
    } finally {
      const next = waiting.shift();
      if (next === undefined) free.push(checker);
      else next(checker);
    }
  };
};

/**
 * Tests rows of the conformance table on WebGPU in Chromium, whose software adapter is SwiftShader. The tests are
 * skipped if Chromium is not installed.
 */
export const describeRows = async (chosen: readonly ConformanceCase[]): Promise<void> => {
  const checkers = await openCheckers();
  describe.skipIf(checkers.length === 0)("conformance on WebGPU in Chromium", () => {
    const check = sharing(checkers);
    afterAll(() => Promise.all(checkers.map((checker) => checker.close())));

    // The test and the worker identify a row by its index in the table.
    test.concurrent.each(chosen.map((row) => [`${row.op}: ${row.name}`, conformanceCases.indexOf(row)] as const))(
      "%s",
      async (_, index) => {
        const failure = await check(index);
        if (failure !== undefined) throw new Error(failure);
      },
    );
  });
};
