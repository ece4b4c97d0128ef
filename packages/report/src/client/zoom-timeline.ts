/**
 * Makes timelines zoom and pan with the pointer, the wheel, buttons (`data-zoom`) and keys, and describes the span
 * under the pointer or the selected span.
 *
 * Keys: ← and → move from span to span, ↑ and ↓ from track to track, Enter fits the selected span to the window; + and
 * − zoom, Shift with ← or → pans, 0 shows all. The wheel zooms if the timeline has the focus, or if Ctrl is pressed;
 * otherwise it scrolls the page as usual.
 *
 * @param root A page, or an element that contains timelines.
 *
 * Runs in the page, which embeds the source of this function; its dependencies are parameters.
 */
export const zoomTimeline = (
  root: Document | HTMLElement,
  secondsText: (seconds: number) => string,
  ticksOf: (from: number, to: number, count: number) => { readonly at: number; readonly text: string }[],
): void => {
  const page = "createElementNS" in root ? root : root.ownerDocument;
  for (const figure of root.querySelectorAll<HTMLElement>("[data-timeline]")) {
    const svg = figure.querySelector<SVGSVGElement>("svg.timeline[data-units]");
    if (svg === null) continue;
    const { units: unitsText, start: startText, end: endText, labels: labelsText } = svg.dataset;
    const units = Number(unitsText);
    const [start, end] = [Number(startText), Number(endText)];
    const labels = (labelsText ?? "").split("\n");
    const least = units / 20_000; // Minimum visible range: below this width, browsers round coordinates too coarsely.
    const output = figure.querySelector("output");
    const ticks = svg.querySelector(".ticks")!;
    const create = (name: string, attributes: Readonly<Record<string, string | number>>): SVGElement => {
      const element = page.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
      return element;
    };
    const tracks = [...svg.querySelectorAll<SVGSVGElement>("svg.track")].map((element) => {
      const spans = [...element.querySelectorAll("path")].flatMap((path) => {
        const own = (path.dataset["l"] ?? "").split(" ").map(Number);
        return [...(path.getAttribute("d") ?? "").matchAll(/M(\d+) (\d+)h(\d+)/g)].map(([, x, y, width], index) => ({
          x: Number(x),
          y: Number(y),
          width: Number(width),
          label: labels[own[index]!] ?? "",
        }));
      });
      return {
        element,
        name: element.dataset["name"] ?? "",
        y: Number(element.getAttribute("y")),
        height: Number(element.getAttribute("height")),
        rows: element.viewBox.baseVal.height,
        spans: spans.sort((a, b) => a.x - b.x),
      };
    });
    type Track = (typeof tracks)[number];
    type Shown = Track["spans"][number];
    const view = { x: 0, width: units };
    const seconds = (x: number): number => start + (x / units) * (end - start);
    const words = ({ name }: Track, span: Shown): string =>
      `${name}: ${span.label}; ${secondsText((span.width / units) * (end - start))} from ${secondsText(seconds(span.x))}`;

    const draw = (): void => {
      view.width = Math.min(units, Math.max(least, view.width));
      view.x = Math.min(units - view.width, Math.max(0, view.x));
      for (const { element, rows } of tracks) element.setAttribute("viewBox", `${view.x} 0 ${view.width} ${rows}`);
      const [from, to] = [seconds(view.x), seconds(view.x + view.width)];
      ticks.replaceChildren(
        ...ticksOf(from, to, svg.clientWidth < 500 ? 3 : 7).flatMap(({ at, text }) => {
          const x = `${(100 * (at - from)) / (to - from)}%`;
          const name = create("text", { x, y: 12, "text-anchor": "middle" });
          name.textContent = text;
          return [create("line", { x1: x, x2: x, y1: 16, y2: "100%" }), name];
        }),
      );
      figure.dataset["zoom"] = String(Math.round((10 * units) / view.width) / 10);
    };
    const zoom = (factor: number, at = 0.5): void => {
      const middle = view.x + at * view.width;
      view.width = Math.min(units, Math.max(least, view.width / factor));
      view.x = middle - at * view.width;
      draw();
    };
    const pan = (part: number): void => {
      view.x += part * view.width;
      draw();
    };
    const showAll = (): void => {
      Object.assign(view, { x: 0, width: units });
      draw();
    };

    let chosen: { readonly track: Track; readonly span: Shown } | undefined;
    const frame = create("rect", { class: "chosen", "vector-effect": "non-scaling-stroke" });
    const choose = (track: Track | undefined, span: Shown | undefined): void => {
      if (track === undefined || span === undefined) return;
      chosen = { track, span };
      for (const [key, value] of Object.entries({ x: span.x, y: span.y - 4.3, width: span.width, height: 8.6 }))
        frame.setAttribute(key, String(value));
      track.element.append(frame);
      if (span.x < view.x || span.x + span.width > view.x + view.width) {
        view.x = span.x + span.width / 2 - view.width / 2;
        draw();
      }
      if (output !== null) output.textContent = words(track, span);
    };
    const nearest = ({ spans }: Track, x: number): Shown | undefined => {
      const distance = (span: Shown): number => Math.max(span.x - x, x - span.x - span.width, 0);
      return spans.reduce<Shown | undefined>(
        (best, span) => (best === undefined || distance(span) < distance(best) ? span : best),
        undefined,
      );
    };
    const under = (clientX: number, clientY: number): { readonly track: Track; readonly span: Shown } | undefined => {
      const box = svg.getBoundingClientRect();
      const track = tracks.find(({ y, height }) => clientY - box.top >= y && clientY - box.top < y + height);
      if (track === undefined || box.width === 0) return undefined;
      const x = view.x + ((clientX - box.left) / box.width) * view.width;
      const row = Math.floor(((clientY - box.top - track.y) / track.height) * (track.rows / 10));
      const slack = (3 * view.width) / box.width; // thin spans can be hit within three pixels
      const span = nearest({ ...track, spans: track.spans.filter(({ y }) => Math.floor(y / 10) === row) }, x);
      return span === undefined || span.x - x > slack || x - span.x - span.width > slack ? undefined : { track, span };
    };

    let dragged: { readonly clientX: number; readonly x: number; moved: boolean } | undefined;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      dragged = { clientX: event.clientX, x: view.x, moved: false };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", ({ clientX, clientY }) => {
      if (dragged !== undefined && (dragged.moved || Math.abs(clientX - dragged.clientX) > 3)) {
        dragged.moved = true;
        view.x = dragged.x - ((clientX - dragged.clientX) / svg.getBoundingClientRect().width) * view.width;
        draw();
      }
      const hit = dragged?.moved === true ? undefined : under(clientX, clientY);
      if (hit === undefined) delete svg.dataset["tip"];
      else svg.dataset["tip"] = words(hit.track, hit.span);
    });
    svg.addEventListener("pointerup", ({ clientX, clientY }) => {
      const hit = dragged?.moved === false ? under(clientX, clientY) : undefined;
      dragged = undefined;
      choose(hit?.track, hit?.span);
    });
    svg.addEventListener("pointercancel", () => {
      dragged = undefined;
    });
    svg.addEventListener(
      "wheel",
      (event) => {
        const { deltaX, deltaY, clientX } = event;
        const sideways = Math.abs(deltaX) > Math.abs(deltaY) || event.shiftKey;
        const box = svg.getBoundingClientRect();
        if (!sideways && (event.ctrlKey || event.metaKey || page.activeElement === svg))
          zoom(Math.exp(-Math.sign(deltaY) * Math.min(0.4, Math.abs(deltaY) / 300)), (clientX - box.left) / box.width);
        else if (sideways && view.width < units) pan((deltaX || deltaY) / box.width);
        else return;
        event.preventDefault();
      },
      { passive: false },
    );
    svg.addEventListener("keydown", (event) => {
      const track = chosen?.track ?? tracks.find(({ spans }) => spans.length > 0);
      const move = (by: number): void => {
        const index = chosen === undefined ? -1 : track!.spans.indexOf(chosen.span);
        choose(track, track?.spans[chosen === undefined ? 0 : index + by]);
      };
      const change = (by: number): void => {
        const filled = tracks.filter(({ spans }) => spans.length > 0);
        const other = track === undefined || chosen === undefined ? filled[0] : filled[filled.indexOf(track) + by];
        if (other !== undefined)
          choose(other, nearest(other, chosen === undefined ? 0 : chosen.span.x + chosen.span.width / 2));
      };
      // Zooming does not move the selected span or, if no span is selected, the middle of the window.
      const at =
        chosen === undefined
          ? 0.5
          : Math.min(1, Math.max(0, (chosen.span.x + chosen.span.width / 2 - view.x) / view.width));
      const actions: Readonly<Record<string, () => void>> = {
        "+": () => zoom(1.6, at),
        "=": () => zoom(1.6, at),
        "-": () => zoom(1 / 1.6, at),
        "0": showAll,
        Escape: showAll,
        ArrowLeft: () => (event.shiftKey ? pan(-0.2) : move(-1)),
        ArrowRight: () => (event.shiftKey ? pan(0.2) : move(1)),
        ArrowUp: () => change(-1),
        ArrowDown: () => change(1),
        Enter: () => {
          if (chosen === undefined) return;
          view.width = Math.max(least, 1.2 * chosen.span.width);
          view.x = chosen.span.x + chosen.span.width / 2 - view.width / 2;
          draw();
        },
      };
      const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
      if (action === undefined) return;
      event.preventDefault();
      action();
    });
    const buttons: Readonly<Record<string, () => void>> = {
      in: () => zoom(1.6),
      out: () => zoom(1 / 1.6),
      left: () => pan(-0.25),
      right: () => pan(0.25),
      all: showAll,
    };
    for (const button of figure.querySelectorAll<HTMLButtonElement>("button[data-zoom]"))
      button.addEventListener("click", () => buttons[button.dataset["zoom"] ?? ""]?.());
    svg.setAttribute("tabindex", "0");
    svg.setAttribute("role", "application");
    svg.setAttribute("aria-roledescription", "timeline");
    draw();
    new ResizeObserver(draw).observe(svg);
  }
};
