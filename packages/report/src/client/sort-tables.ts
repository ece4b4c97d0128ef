/**
 * Makes tables of class `sortable` sortable by a click on a heading, and filters their rows by the input fields whose
 * `data-filters` is the table's id. A row is visible if it contains all words of each text field, and if its `data-`
 * attribute with the name of each choice field equals the choice.
 *
 * Runs in the page, which embeds the source of this function, so this function must not use names from outside.
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
        // The first click on a column of numbers sorts the largest number first.
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
          // Cells without a number come last in both sort directions.
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
    // If a user returns to the page, the browser restores the filter fields, so the rows must be filtered again.
    filter();
  }
};
