import { cut, displayWidth, padded } from "./display-width.ts";

/** Column of a table in the terminal. */
export interface TextColumn {
  readonly heading: string;
  readonly numeric: boolean;
  /** Part of a cell's text that an ellipsis replaces if the text is too long. */
  readonly cutAt: "middle" | "end";
  /** Minimum width to which a text column is shortened. If the table is still too wide, columns are dropped. */
  readonly least: number;
  /** Weight of the column. If there is not enough room, columns with the smallest weight are dropped first. */
  readonly weight: number;
}

const gap = 2;

const total = (widths: readonly number[]): number =>
  widths.reduce((sum, width) => sum + width, 0) + gap * Math.max(0, widths.length - 1);

/**
 * Formats rows as lines of at most `width` columns. If the table is too wide, the widest text columns are shortened,
 * then columns are dropped. Numbers are never cut.
 */
export const textTable = (
  columns: readonly TextColumn[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] => {
  const natural = columns.map(({ heading }, index) =>
    rows.reduce((most, row) => Math.max(most, displayWidth(row[index]!)), displayWidth(heading)),
  );
  let visible = columns.map((_, index) => index);
  const minOf = (index: number): number =>
    columns[index]!.numeric ? natural[index]! : Math.min(natural[index]!, columns[index]!.least);
  while (visible.length > 1 && total(visible.map(minOf)) > width) {
    const lightest = visible.reduce((best, index) => (columns[index]!.weight < columns[best]!.weight ? index : best));
    visible = visible.filter((index) => index !== lightest);
  }
  const widths = visible.map((index) => natural[index]!);
  while (total(widths) > width) {
    const longest = widths.reduce(
      (best, own, at) => (!columns[visible[at]!]!.numeric && (best === -1 || own > widths[best]!) ? at : best),
      -1,
    );
    if (longest === -1 || widths[longest]! <= 1) break;
    widths[longest]!--;
  }
  const line = (cells: readonly string[]): string =>
    visible
      .map((index, at) => {
        const { numeric, cutAt } = columns[index]!;
        return padded(cut(cells[index]!, widths[at]!, cutAt), widths[at]!, numeric ? "right" : "left");
      })
      .join(" ".repeat(gap))
      .trimEnd();
  return [line(columns.map(({ heading }) => heading)), ...rows.map(line)];
};
