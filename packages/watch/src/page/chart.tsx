import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { extentOf } from "./axis-x.ts";
import { type ChartLine, ChartLines } from "./chart-lines.ts";
import type { ChartPlan } from "./chart-plan.ts";
import { ChartTable } from "./chart-table.tsx";
import { cancelDraw, drawSoon } from "./draw-queue.ts";
import { Plot } from "./plot.ts";
import { axisText, lineName, type LinesProps, valueAt } from "./shown-lines.ts";
import { axis, isLogarithmic, loadedRun, mark, range, shownIds, smoothing } from "./store.ts";
import { colourChanges } from "./theme.ts";

/** Removes trailing zeros: 0.500 → 0.5. */
const shortened = (text: string): string => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

export const Chart = ({ plan }: { readonly plan: ChartPlan }): JSX.Element => {
  const container = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => new ChartLines(), []);
  const version = useSignal(0);
  const isOpen = useSignal(false);
  const current = useRef<readonly ChartLine[]>([]);
  const latest = useRef(plan);
  latest.current = plan;
  const state = useMemo(() => ({ isVisible: false, plot: undefined as Plot | undefined }), []);
  const draw = useMemo(
    () => (): void => {
      if (!state.isVisible || state.plot === undefined) return;
      const ids = JSON.parse(shownIds.peek()) as string[];
      current.current = lines.of(latest.current, ids, axis.peek(), smoothing.peek());
      const { text } = latest.current;
      state.plot.draw(
        current.current,
        {
          ...(range.peek() ?? extentOf(ids.map(loadedRun), axis.peek())),
          most: latest.current.most,
          isLogarithmic: isLogarithmic.peek(),
          isSmoothed: smoothing.peek() > 0,
          isWholeX: axis.peek() === "step",
          textX: axisText,
          textY: (value) => shortened(text(value)),
        },
        colourChanges.peek(),
      );
      state.plot.point(mark.peek());
      version.value++;
    },
    [],
  );
  useEffect(() => {
    state.plot = new Plot(container.current!, {
      pointed: (x) => {
        mark.value = x;
      },
      ranged: (next) => {
        range.value = next;
      },
    });
    const seen = new IntersectionObserver(
      ([entry]) => {
        state.isVisible = entry!.isIntersecting;
        if (state.isVisible) drawSoon(draw);
      },
      { rootMargin: "200px" },
    );
    const sized = new ResizeObserver(() => drawSoon(draw));
    seen.observe(container.current!);
    sized.observe(container.current!);
    return () => {
      seen.disconnect();
      sized.disconnect();
      cancelDraw(draw);
      state.plot?.destroy();
    };
  }, []);
  useEffect(() => drawSoon(draw), [plan.id, plan.quantities.length]);
  useSignalEffect(() => {
    for (const id of JSON.parse(shownIds.value) as string[]) void loadedRun(id).version.value;
    void [axis.value, smoothing.value, isLogarithmic.value, range.value, colourChanges.value];
    drawSoon(draw);
  });
  useSignalEffect(() => state.plot?.point(mark.value));

  const onKeyDown = (event: KeyboardEvent): void => {
    const whole = extentOf((JSON.parse(shownIds.peek()) as string[]).map(loadedRun), axis.peek());
    const { from, to } = range.peek() ?? whole;
    const at = mark.peek() ?? to;
    const step = (to - from) / 50;
    if (event.key === "ArrowLeft") mark.value = Math.max(from, at - step);
    else if (event.key === "ArrowRight") mark.value = Math.min(to, at + step);
    else if (event.key === "+" || event.key === "=")
      range.value = { from: at - (at - from) / 2, to: at + (to - at) / 2 };
    else if (event.key === "-") {
      const wider = {
        from: Math.max(whole.from, from - (to - from) / 2),
        to: Math.min(whole.to, to + (to - from) / 2),
      };
      range.value = wider.from <= whole.from && wider.to >= whole.to ? undefined : wider;
    } else if (event.key === "Escape") {
      range.value = undefined;
      mark.value = undefined;
    } else return;
    event.preventDefault();
  };

  const headingId = `chart-${plan.id}`;
  return (
    <section class="chart-box" aria-labelledby={headingId}>
      <h3 id={headingId}>{plan.title}</h3>
      <Legend plan={plan} lines={current} version={version} />
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys move its mark */}
      <div
        class="plot"
        ref={container}
        role="application"
        tabIndex={0}
        aria-label={`${plan.title} by ${axis.value}. Arrow keys move the mark, plus and minus zoom, Escape shows all. The data table below has its numbers.`}
        onKeyDown={onKeyDown}
      />
      {plan.leftOut > 0 && <p class="quiet">{plan.leftOut} more quantities of this name are not drawn</p>}
      <details
        onToggle={(event) => {
          isOpen.value = event.currentTarget.open;
        }}
      >
        <summary>Data table</summary>
        {isOpen.value && <ChartTable plan={plan} lines={current} version={version} />}
      </details>
    </section>
  );
};

const Legend = ({ plan, lines, version }: LinesProps): JSX.Element => {
  const items = useComputed(() => {
    void version.value;
    return lines.current.map((line) => ({ line, value: valueAt(line, mark.value) }));
  });
  return (
    <ul class="line-names">
      {items.value.map(({ line, value }) => (
        <li key={line.key} class={`run-${line.colour} dash-${line.dash}`}>
          <i aria-hidden="true" />
          <span>{lineName(plan, line)}</span> <b>{Number.isFinite(value) ? plan.text(value) : "–"}</b>
        </li>
      ))}
    </ul>
  );
};
