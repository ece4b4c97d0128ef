import { escapeText } from "../html.ts";

/** Column of a table. Numeric cells are right-aligned and sorted by value. */
export interface Column {
  readonly heading: string;
  readonly numeric: boolean;
  /** Tooltip that explains a short heading. Absent: no tooltip. */
  readonly meaning?: string;
}

/** Cells of a row as text, and data attributes of the row for the page's filters. */
export interface Row {
  readonly cells: readonly string[];
  readonly data?: Readonly<Record<string, string>>;
  readonly className?: string;
}

/** Returns the HTML of a table whose rows are sorted by a click on a heading. All text is escaped. */
export const sortableTable = (
  id: string,
  caption: string,
  columns: readonly Column[],
  rows: readonly Row[],
): string => {
  const head = columns.map(({ heading, numeric, meaning }) => {
    const title = meaning === undefined ? "" : ` title="${escapeText(meaning)}"`;
    return `<th scope="col"${numeric ? ' class="number"' : ""}><button type="button"${title}>${escapeText(heading)}</button></th>`;
  });
  const body = rows.map(({ cells, data = {}, className }) => {
    const attributes = Object.entries(data).map(([name, value]) => ` data-${name}="${escapeText(value)}"`);
    return `<tr${className === undefined ? "" : ` class="${className}"`}${attributes.join("")}>${cells
      .map((cell, index) => `<td${columns[index]!.numeric ? " class=n" : ""}>${escapeText(cell)}</td>`)
      .join("")}</tr>`;
  });
  return `<div class="scroll" tabindex="0" role="region" aria-label="${escapeText(caption)}"><table class="sortable" id="${id}"><caption>${escapeText(
    caption,
  )}</caption><thead><tr>${head.join("")}</tr></thead><tbody>\n${body.join("\n")}\n</tbody></table></div>`;
};
