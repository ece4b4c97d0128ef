/**
 * Shows a tooltip with the text of a mark's `title` or `data-tip`, next to the pointer or next to the focused mark.
 * Escape hides the tooltip.
 *
 * Runs in the page, which embeds the source of this function, so this function must not use names from outside.
 */
export const showTips = (page: Document): void => {
  const tip = page.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  page.body.append(tip);
  /**
   * Returns the tooltip text of a mark. Moves the text of a `title` to the mark's label, because browsers show titles
   * late and in their own style.
   */
  const textOf = (target: EventTarget | null): string | undefined => {
    for (let at = target instanceof Element ? target : null; at !== null; at = at.parentElement) {
      const title = [...at.children].find(({ tagName }) => tagName === "title");
      if (title !== undefined && at.tagName !== "head") {
        const text = title.textContent ?? "";
        at.setAttribute("aria-label", text);
        at.setAttribute("data-tip", text);
        title.remove();
      }
      const text = at.getAttribute("data-tip");
      if (text !== null) return text;
    }
    return undefined;
  };
  const show = (text: string | undefined, x: number, y: number): void => {
    tip.hidden = text === undefined || text === "";
    if (tip.hidden) return;
    tip.textContent = text!;
    const { width, height } = tip.getBoundingClientRect();
    const { clientWidth, clientHeight } = page.documentElement;
    tip.style.left = `${Math.max(4, Math.min(x + 12, clientWidth - width - 4))}px`;
    tip.style.top = `${y + 16 + height > clientHeight ? Math.max(4, y - height - 10) : y + 16}px`;
  };
  page.addEventListener("pointermove", ({ target, clientX, clientY }) => show(textOf(target), clientX, clientY));
  page.addEventListener("pointerdown", ({ target, clientX, clientY }) => show(textOf(target), clientX, clientY));
  page.addEventListener("focusin", ({ target }) => {
    if (!(target instanceof SVGElement)) return show(undefined, 0, 0);
    const { left, bottom } = target.getBoundingClientRect();
    show(target.matches(".cell") ? textOf(target) : undefined, left, bottom - 12);
  });
  page.addEventListener("scroll", () => show(undefined, 0, 0), { capture: true, passive: true });
  page.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") show(undefined, 0, 0);
  });
};
