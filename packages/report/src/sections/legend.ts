import { escapeText } from "../html.ts";
import { type Kind, kindNames } from "../tokens.ts";

/** A legend: a color patch with a text for each entry. */
export const legend = (entries: readonly (readonly [kind: Kind, words: string])[]): string =>
  `<ul class="legend">${entries.map(([kind, words]) => `<li class="k-${kind}"><i></i>${escapeText(words)}</li>`).join("")}</ul>`;

/** A legend of kinds by their names. */
export const kindKey = (kinds: readonly Kind[]): string =>
  legend(kinds.map((kind) => [kind, kindNames[kind]] as const));
