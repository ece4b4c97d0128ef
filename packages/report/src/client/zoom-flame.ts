/**
 * Makes flame charts interactive. A click on a cell, or Enter, widens the cell to the full width, and the breadcrumb
 * trail above the chart leads back. Arrow keys move from cell to cell.
 *
 * Runs in the page, which embeds the source of this function, so this function must not use names from outside.
 */
export const zoomFlame = (page: Document): void => {
  for (const svg of page.querySelectorAll<SVGSVGElement>("svg.flame")) {
    /**
     * Returns the name in a cell's title, which has the form "name: time, share". Names may contain colons; times do
     * not.
     */
    const nameOf = (element: Element): string =>
      (element.querySelector("title")?.textContent ?? "").replace(/: [^:]*$/, "");
    const cells = [...svg.querySelectorAll<SVGSVGElement>("svg.cell")].map((element, index) => {
      const number = (name: string): number => Number.parseFloat(element.getAttribute(name) ?? "0");
      // Cells whose width is rounded to 0 can also be opened, so the width has a lower bound.
      const width = Math.max(1e-4, number("width"));
      return { element, index, x: number("x"), y: number("y"), width, name: nameOf(element) };
    });
    const [root] = cells;
    if (root === undefined) continue;
    type Cell = typeof root;
    const rowHeight = 21;
    // Cells are in depth-first order: a child comes after its parent and before the parent's next sibling.
    const parentOf = (cell: Cell): Cell | undefined =>
      cells.findLast(({ y, index }) => y === cell.y - rowHeight && index < cell.index);
    const pathTo = (cell: Cell): Cell[] => {
      const parent = parentOf(cell);
      return parent === undefined ? [cell] : [...pathTo(parent), cell];
    };
    const endOf = (cell: Cell): number => {
      const end = cells.findIndex(({ y, index }) => index > cell.index && y <= cell.y);
      return end === -1 ? cells.length : end;
    };
    const trail = page.createElement("nav");
    trail.className = "trail";
    trail.setAttribute("aria-label", "opened part of the flame chart");
    svg.before(trail);
    let opened = root;

    const layOut = (): void => {
      const pixels = svg.getBoundingClientRect().width;
      const around = new Set(pathTo(opened).slice(0, -1));
      const end = endOf(opened);
      for (const cell of cells) {
        const isAround = around.has(cell);
        const x = isAround ? 0 : (100 * (cell.x - opened.x)) / opened.width;
        const width = isAround ? 100 : (100 * cell.width) / opened.width;
        cell.element.setAttribute("x", `${x}%`);
        cell.element.setAttribute("width", `${width}%`);
        cell.element.style.display = isAround || (cell.index >= opened.index && cell.index < end) ? "" : "none";
        cell.element.classList.toggle("around", isAround);
        if (cell.element.style.display === "" && cell.element.querySelector("text") === null) {
          const text = page.createElementNS("http://www.w3.org/2000/svg", "text");
          text.setAttribute("x", "4");
          text.setAttribute("y", "14");
          text.textContent = cell.name;
          cell.element.append(text);
        }
        cell.element.classList.toggle("narrow", pixels > 0 && (width / 100) * pixels < 28);
      }
    };
    const open = (cell: Cell): void => {
      opened = cell;
      layOut();
      trail.replaceChildren(
        ...pathTo(cell).flatMap((one, index, path) => {
          const button = page.createElement("button");
          button.type = "button";
          button.textContent = one.name;
          if (index === path.length - 1) button.setAttribute("aria-current", "true");
          button.addEventListener("click", () => open(one));
          return index === 0 ? [button] : [" › ", button];
        }),
      );
    };
    const focus = (cell: Cell | undefined): void => {
      if (cell === undefined) return;
      for (const one of cells) one.element.setAttribute("tabindex", one === cell ? "0" : "-1");
      cell.element.focus();
    };
    for (const cell of cells) {
      cell.element.setAttribute("role", "button");
      cell.element.setAttribute("tabindex", cell === root ? "0" : "-1");
      cell.element.addEventListener("click", () => open(cell));
      cell.element.addEventListener("keydown", (event) => {
        const visible = (one: Cell | undefined): Cell | undefined =>
          one === undefined || one.element.style.display === "none" ? undefined : one;
        const siblings = cells
          .filter((one) => one.y === cell.y && visible(one) !== undefined)
          .sort((a, b) => a.x - b.x);
        const index = siblings.indexOf(cell);
        switch (event.key) {
          case "Enter":
          case " ":
            open(cell);
            break;
          case "ArrowRight":
            focus(siblings[index + 1]);
            break;
          case "ArrowLeft":
            focus(siblings[index - 1]);
            break;
          case "ArrowDown":
            if (cells[cell.index + 1]?.y === cell.y + rowHeight) focus(visible(cells[cell.index + 1]));
            break;
          case "ArrowUp":
            focus(parentOf(cell));
            break;
          case "Backspace":
            open(parentOf(opened) ?? root);
            focus(opened);
            break;
          default:
            return;
        }
        event.preventDefault();
      });
    }
    svg.setAttribute("role", "group");
    open(root);
    new ResizeObserver(layOut).observe(svg);
  }
};
