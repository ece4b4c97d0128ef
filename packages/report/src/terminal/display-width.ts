const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

const isWide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1FAFF}\u{20000}-\u{3FFFD}]/u;

/** Makes text safe for a terminal: control and format characters become "?", and white space becomes a blank. */
export const printable = (text: string): string =>
  text.replaceAll(/\s+/gu, " ").replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, "?");

const cells = (text: string): { readonly segment: string; readonly width: number }[] =>
  [...graphemes.segment(text)].map(({ segment }) => ({ segment, width: isWide.test(segment) ? 2 : 1 }));

/**
 * Returns the number of terminal columns that a text occupies: two per East Asian character and most pictographs,
 * otherwise one.
 */
export const displayWidth = (text: string): number =>
  /^[ -~]*$/.test(text) ? text.length : cells(text).reduce((sum, { width }) => sum + width, 0);

/**
 * Shortens text to at most `width` columns with an ellipsis. The ellipsis is at the end, or in the middle for paths,
 * whose start and end are most informative.
 */
export const cut = (text: string, width: number, at: "end" | "middle" = "end"): string => {
  if (displayWidth(text) <= width) return text;
  if (width < 1) return "";
  const fitting = (all: readonly { readonly segment: string; readonly width: number }[], room: number): string[] => {
    const taken: string[] = [];
    let used = 0;
    for (const { segment, width: own } of all) {
      used += own;
      if (used > room) break;
      taken.push(segment);
    }
    return taken;
  };
  const all = cells(text);
  const after = at === "end" ? 0 : Math.floor((width - 1) / 2);
  return `${fitting(all, width - 1 - after).join("")}…${fitting(all.toReversed(), after).reverse().join("")}`;
};

/** Pads text with blanks to a width in columns. */
export const padded = (text: string, width: number, side: "left" | "right"): string => {
  const blanks = " ".repeat(Math.max(0, width - displayWidth(text)));
  return side === "left" ? text + blanks : blanks + text;
};

/** Matches the blank between a number and its unit, at which a line must not break. */
const unitGap = /(?<=\d) (?=(?:%|[nµm]?s|[KMGT]iB|B)(?![\p{L}\d]))/gu;
const noBreak = "\u00A0";

/** Breaks text into lines of at most `width` columns, between words, or inside a word that is longer than a line. */
export const wrapped = (text: string, width: number): string[] => {
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const word of text.replaceAll(unitGap, noBreak).split(" ")) {
    if (word === "") continue;
    if (used > 0 && used + 1 + displayWidth(word) <= width) {
      line += " ";
      used++;
    } else if (used > 0) {
      lines.push(line);
      [line, used] = ["", 0];
    }
    const whole = displayWidth(word);
    for (const { segment, width: own } of used + whole <= width ? [{ segment: word, width: whole }] : cells(word)) {
      if (used > 0 && used + own > width) {
        lines.push(line);
        [line, used] = ["", 0];
      }
      line += segment;
      used += own;
    }
  }
  return [...lines, line].map((one) => one.replaceAll(noBreak, " "));
};

/** Formats text with a hanging indent after a mark or a name; lines have at most `columns` columns. */
export const hangingIndent = (mark: string, text: string, columns: number): string[] => {
  const margin = displayWidth(mark);
  return wrapped(text, columns - margin).map((line, index) => (index === 0 ? mark : " ".repeat(margin)) + line);
};
