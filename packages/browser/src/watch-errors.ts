import type { Page } from "playwright-core";

/**
 * Collects the errors that a page reports from now on: console errors, uncaught exceptions and failed requests,
 * including those of its workers. The returned list grows.
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
