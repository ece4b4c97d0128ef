import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { axes } from "./axis-x.ts";
import { type ChartPlan, chartPlans, matchesWords } from "./chart-plan.ts";
import { Chart } from "./chart.tsx";
import { maxSmoothing } from "./address.ts";
import { axis, chartWords, isLogarithmic, loadedRun, mark, range, shownIds, smoothing } from "./store.ts";

const Toolbar = (): JSX.Element => (
  <div class="toolbar">
    <label>
      charts{" "}
      <input
        type="search"
        size={18}
        placeholder="all; or words: held loss"
        value={chartWords.value}
        onInput={(event) => {
          chartWords.value = event.currentTarget.value;
        }}
      />
    </label>
    <label>
      smoothing{" "}
      <input
        type="range"
        min={0}
        max={maxSmoothing}
        step={0.01}
        value={smoothing.value}
        onInput={(event) => {
          smoothing.value = Number(event.currentTarget.value);
        }}
      />
      <output>{smoothing.value.toFixed(2)}</output>
    </label>
    <label>
      along{" "}
      <select
        value={axis.value}
        onChange={(event) => {
          axis.value = axes.find((one) => one === event.currentTarget.value) ?? "step";
          range.value = undefined;
          mark.value = undefined;
        }}
      >
        {axes.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
    <label>
      <input
        type="checkbox"
        checked={isLogarithmic.value}
        onChange={(event) => {
          isLogarithmic.value = event.currentTarget.checked;
        }}
      />{" "}
      logarithmic
    </label>
    <button
      type="button"
      disabled={range.value === undefined}
      onClick={() => {
        range.value = undefined;
      }}
    >
      reset zoom
    </button>
  </div>
);

export const Charts = (): JSX.Element => {
  const plans = useComputed(() => {
    const ids = JSON.parse(shownIds.value) as string[];
    const quantities = ids.flatMap((id) => {
      const run = loadedRun(id);
      void run.version.value;
      return [...run.byType].flatMap(([type, rows]) => [...rows.columns.keys()].map((name) => ({ type, name })));
    });
    return JSON.stringify(quantities);
  });
  const words = chartWords.value;
  const key = useComputed(() => plans.value);
  const all = chartPlans(JSON.parse(key.value) as { type: string; name: string }[]);
  const wanted = (plans: readonly ChartPlan[]): ChartPlan[] => plans.filter((plan) => matchesWords(plan, words));
  const [main, others] = [wanted(all.main), wanted(all.others)];
  const grid = (list: readonly ChartPlan[]): JSX.Element => (
    <div class="charts">
      {list.map((plan) => (
        <Chart key={plan.id} plan={plan} />
      ))}
    </div>
  );
  return (
    <section aria-labelledby="charts-heading">
      <h2 id="charts-heading">Charts</h2>
      <Toolbar />
      <p class="quiet">Drag across a chart to zoom all charts; double-click to show all again.</p>
      {all.main.length === 0 && <p>No run is selected; choose one above.</p>}
      {all.main.length > 0 && main.length + others.length === 0 && <p>No chart matches these words.</p>}
      {grid(main)}
      {others.length > 0 && (
        <>
          <h2>Further quantities</h2>
          {grid(others)}
        </>
      )}
    </section>
  );
};
