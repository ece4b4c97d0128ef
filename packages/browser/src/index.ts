export { type ChromiumOptions, findChromium, openChromium } from "./chromium.ts";
export { type ServedPage, servePage } from "./serve-page.ts";
export { watchErrors } from "./watch-errors.ts";
