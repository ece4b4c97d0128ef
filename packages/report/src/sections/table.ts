import { escapeText } from "../html.ts";

/** A column of a table: its heading, and whether its cells are numbers, which are right-aligned and sorted by value. */
export interface Column {
  readonly heading: string;
  readonly numeric: boolean;
  /** Tooltip that explains a short heading. */
  readonly meaning?: string;
}

/** A row: its cells as text, and the data attributes used by the page's filters. */
export interface Row {
  readonly cells: readonly string[];
  readonly data?: Readonly<Record<string, string>>;
  readonly className?: string;
}

/** A table that sorts by a click on its headings. All text is escaped. */
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
