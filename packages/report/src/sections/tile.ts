import { escapeText } from "../html.ts";

/** Returns the HTML of a tile that shows a key metric: its name, its value, and a detail. */
export const tile = (name: string, value: string, detail: string, className = ""): string =>
  `<div class="tile ${className}"><dt>${escapeText(name)}</dt><dd><strong>${escapeText(value)}</strong><span>${escapeText(detail)}</span></dd></div>`;
