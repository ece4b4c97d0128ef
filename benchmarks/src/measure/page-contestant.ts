import type { Browser } from "playwright-core";
import type { ContestantProcess } from "./contestant-process.ts";
import type { ContestantReply, ContestantRequest } from "./protocol.ts";

/** Opens an implementation in a separate page of the browser. */
export const openPageContestant = async (browser: Browser, name: string, url: string): Promise<ContestantProcess> => {
  const page = await browser.newPage();
  page.setDefaultTimeout(300_000);
  await page.goto(url);
  await page.waitForFunction(() => "askContestant" in globalThis);
  return {
    name,
    ask: (request) =>
      page.evaluate(
        (asked) =>
          (globalThis as unknown as { askContestant(r: ContestantRequest): Promise<ContestantReply> }).askContestant(
            asked,
          ),
        request,
      ),
    close: () => void page.close(),
  };
};
