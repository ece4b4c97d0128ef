/**
 * Make tables of class `sortable` sort by a click on a heading, and filter by the fields that name the table in
 * `data-filters`: all words of a text field must be in a row, and a choice must be what the row has in its `data-`
 * attribute of the field's name.
 *
 * Runs in the page, which carries its source: it uses nothing from outside.
 */
export const sortTables = (page: Document): void => {
  for (const table of page.querySelectorAll<HTMLTableElement>("table.sortable")) {
    const body = table.tBodies[0]!;
    const rows = [...body.rows];
    const headings = [...table.tHead!.rows[0]!.cells];
    for (const [column, heading] of headings.entries()) {
      const numeric = heading.classList.contains("number");
      const textOf = (row: HTMLTableRowElement): string => row.cells[column]?.textContent ?? "";
      heading.querySelector("button")?.addEventListener("click", () => {
        const before = heading.getAttribute("aria-sort");
        // Of numbers, the largest are wanted first.
        const direction =
          before === null
            ? numeric
              ? "descending"
              : "ascending"
            : before === "ascending"
              ? "descending"
              : "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", direction);
        const sign = direction === "ascending" ? 1 : -1;
        const compare = (a: HTMLTableRowElement, b: HTMLTableRowElement): number => {
          if (!numeric) return sign * textOf(a).localeCompare(textOf(b), "en", { numeric: true });
          const [x, y] = [Number.parseFloat(textOf(a)), Number.parseFloat(textOf(b))];
          // What has no number comes last either way.
          if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
          return sign * (x - y);
        };
        body.append(...rows.toSorted(compare));
      });
    }
    const fields = [...page.querySelectorAll<HTMLInputElement | HTMLSelectElement>("[data-filters]")].filter(
      ({ dataset }) => dataset["filters"] === table.id,
    );
    const count = page.querySelector(`output[data-counts="${table.id}"]`);
    const filter = (): void => {
      let shown = 0;
      for (const row of rows) {
        const text = (row.textContent ?? "").toLowerCase();
        const fits = fields.every((field) =>
          field.tagName === "SELECT"
            ? field.value === "" || row.getAttribute(`data-${field.name}`) === field.value
            : field.value
                .toLowerCase()
                .split(/\s+/)
                .every((word) => text.includes(word)),
        );
        row.hidden = !fits;
        if (fits) shown++;
      }
      if (count !== null) count.textContent = `${shown} of ${rows.length}`;
    };
    for (const field of fields) field.addEventListener("input", filter);
    // A browser that comes back to a page fills in what had been typed.
    filter();
  }
};
