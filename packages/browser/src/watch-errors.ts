import type { Page } from "playwright-core";

/**
 * Collects the errors that a page and its workers report after this call: console errors, uncaught exceptions and
 * failed requests. New errors are appended to the returned list.
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
