import { escapeText } from "../html.ts";

/** A figure that is seen first: its name, its value, a word on it. */
export const tile = (name: string, value: string, detail: string, className = ""): string =>
  `<div class="tile ${className}"><dt>${escapeText(name)}</dt><dd><strong>${escapeText(value)}</strong><span>${escapeText(detail)}</span></dd></div>`;
