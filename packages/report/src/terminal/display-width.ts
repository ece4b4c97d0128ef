const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

const isWide =
  /^[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1FAFF}\u{20000}-\u{3FFFD}]/u;

/**
 * Text that a terminal shows as it is: what would move the cursor or change colours becomes a "?", white space a blank.
 */
export const printable = (text: string): string =>
  text.replaceAll(/\s+/gu, " ").replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, "?");

const cells = (text: string): { readonly segment: string; readonly width: number }[] =>
  [...graphemes.segment(text)].map(({ segment }) => ({ segment, width: isWide.test(segment) ? 2 : 1 }));

/** Columns of a terminal that text takes: two for letters of East Asian scripts and most pictures. */
export const displayWidth = (text: string): number =>
  /^[ -~]*$/.test(text) ? text.length : cells(text).reduce((sum, { width }) => sum + width, 0);

/**
 * Text in at most `width` columns; an ellipsis stands for what is cut, at the end or, of paths, whose begin and end say
 * most, in the middle.
 */
export const cut = (text: string, width: number, at: "end" | "middle" = "end"): string => {
  if (displayWidth(text) <= width) return text;
  if (width < 1) return "";
  const fitting = (all: readonly { readonly segment: string; readonly width: number }[], room: number): string[] => {
    const kept: string[] = [];
    let used = 0;
    for (const { segment, width: own } of all) {
      used += own;
      if (used > room) break;
      kept.push(segment);
    }
    return kept;
  };
  const all = cells(text);
  const after = at === "end" ? 0 : Math.floor((width - 1) / 2);
  return `${fitting(all, width - 1 - after).join("")}…${fitting(all.toReversed(), after).reverse().join("")}`;
};

/** Text with blanks up to a width. */
export const padded = (text: string, width: number, side: "left" | "right"): string => {
  const blanks = " ".repeat(Math.max(0, width - displayWidth(text)));
  return side === "left" ? text + blanks : blanks + text;
};

/** Between a number and its unit no line ends. */
const unitGap = /(?<=\d) (?=(?:%|[nµm]?s|[KMGT]iB|B)(?![\p{L}\d]))/gu;
const noBreak = "\u00A0";

/** Text in lines of at most `width` columns, broken between words, and inside of those that are longer. */
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

/** Text beside a mark or a name, `columns` wide in all: further lines begin below the first one's text. */
export const beside = (mark: string, text: string, columns: number): string[] => {
  const margin = displayWidth(mark);
  return wrapped(text, columns - margin).map((line, index) => (index === 0 ? mark : " ".repeat(margin)) + line);
};
