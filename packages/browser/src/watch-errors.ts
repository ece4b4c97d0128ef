import type { Page } from "playwright-core";

/**
 * Collect what a page reports as an error, from now on: console errors and uncaught exceptions, also of its workers.
 */
export const watchErrors = (page: Page): readonly string[] => {
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("requestfailed", (request) => errors.push(`${request.url()}: ${request.failure()?.errorText ?? "failed"}`));
  return errors;
};
