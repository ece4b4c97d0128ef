import { cut, displayWidth, padded } from "./display-width.ts";

/** A column of a table in a terminal. */
export interface TextColumn {
  readonly heading: string;
  readonly numeric: boolean;
  /** Where a cell of text that is too long is cut. */
  readonly cutAt: "middle" | "end";
  /** A column of text is cut down to this before a column is left out. */
  readonly least: number;
  /** Where there is no room, those of the least weight are left out first. */
  readonly weight: number;
}

const gap = 2;

const total = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1);

/**
 * Lay rows out in lines of at most `width`: the longest text is cut first, then columns are left out. A number is never
 * cut.
 */
export const textTable = (
  columns: readonly TextColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] => {
  const natural = columns.map(({ heading }, index) =>
    rows.reduce((most, row) => Math.max(most, displayWidth(row[index]!)), displayWidth(heading)),
  );
  let kept = columns.map((_, index) => index);
  const leastOf = (index: number): number =>
    columns[index]!.numeric ? natural[index]! : Math.min(natural[index]!, columns[index]!.least);
  while (kept.length > 1 && total(kept.map(leastOf)) > width) {
    const lightest = kept.reduce((best, index) => (columns[index]!.weight < columns[best]!.weight ? index : best));
    kept = kept.filter((index) => index !== lightest);
  }
  const widths = kept.map((index) => natural[index]!);
  while (total(widths) > width) {
    const longest = widths.reduce(
      (best, own, at) => (!columns[kept[at]!]!.numeric && (best === -1 || own > widths[best]!) ? at : best),
      -1,
    );
    if (longest === -1 || widths[longest]! <= 1) break;
    widths[longest]!--;
  }
  const line = (cells: readonly string[]): string =>
    kept
      .map((index, at) => {
        const { numeric, cutAt } = columns[index]!;
        return padded(cut(cells[index]!, widths[at]!, cutAt), widths[at]!, numeric ? "right" : "left");
      })
      .join(" ".repeat(gap))
      .trimEnd();
  return [line(columns.map(({ heading }) => heading)), ...rows.map(line)];
};
