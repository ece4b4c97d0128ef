import { escapeText } from "../html.ts";
import type { Kind } from "../tokens.ts";

/** A key to the colours: a patch and its words each. */
export const legend = (entries: readonly (readonly [kind: Kind, words: string])[]): string =>
  `<ul class="legend">${entries.map(([kind, words]) => `<li class="k-${kind}"><i></i>${escapeText(words)}</li>`).join("")}</ul>`;
