import { escapeText } from "../html.ts";

/** A column of a table: its heading, and whether it has numbers, which stand to the right and are sorted as such. */
export interface Column {
  readonly heading: string;
  readonly numeric: boolean;
  /** What the heading means, where it is short. */
  readonly meaning?: string;
}

/** A row: its cells as text, and what the page's filters look at. */
export interface Row {
  readonly cells: readonly string[];
  readonly data?: Readonly<Record<string, string>>;
  readonly className?: string;
}

/** A table whose headings sort it. All text is escaped. */
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
