import { escapeText } from "../html.ts";
import { type Kind, kindNames } from "../tokens.ts";

/** Returns the HTML of a legend: for each entry, a patch in the color of its kind, and a text. */
export const legend = (entries: readonly (readonly [kind: Kind, words: string])[]): string =>
  `<ul class="legend">${entries.map(([kind, words]) => `<li class="k-${kind}"><i></i>${escapeText(words)}</li>`).join("")}</ul>`;

/** Returns the HTML legend of the given kinds, labeled with their names. */
export const kindKey = (kinds: readonly Kind[]): string =>
  legend(kinds.map((kind) => [kind, kindNames[kind]] as const));
