/**
 * Make tables of class `sortable` sort by a click on a heading, and filter by the fields that name the table in
 * `data-filters`: a row must contain all words of a text field, and the row's `data-` attribute with the name of a
 * choice field must equal the choice.
 *
 * Runs in the page, which embeds the source of this function, so this function uses nothing from outside.
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
        // For numbers, users want the largest first.
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
          // Cells without a number come last in both directions.
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
      let visible = 0;
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
        if (fits) visible++;
      }
      if (count !== null) count.textContent = `${visible} of ${rows.length}`;
    };
    for (const field of fields) field.addEventListener("input", filter);
    // A browser that returns to a page restores the typed filters.
    filter();
  }
};
