import { useSignal } from "@preact/signals";
import { describeHistogram, type HistogramKind, histogramChart } from "@skein/report";
import type { Histogram, ParameterHistograms, StepHistograms } from "@skein/report";
import type { RunFacts, ShownHistograms } from "@skein/run-files/node";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

/** Number of parameters drawn initially, and number of parameters added when the user requests more. */
const shownAtOnce = 30;

const Chart = ({
  path,
  kind,
  histogram,
  isLogarithmic,
}: {
  readonly path: string;
  readonly kind: HistogramKind;
  readonly histogram: Histogram;
  readonly isLogarithmic: boolean;
}): JSX.Element => {
  const about = describeHistogram(histogram);
  const __html = useMemo(
    () =>
      histogramChart(histogram, {
        label: `${kind} of ${path}: ${about}`,
        kind: kind === "weights" ? "forward" : "backward",
        isLogarithmic,
      }),
    [histogram, isLogarithmic],
  );
  return (
    <figure>
      {/* Text from the run is escaped where the chart is created. */}
      <div dangerouslySetInnerHTML={{ __html }} />
      <figcaption class={histogram.nonFinite > 0 ? "wrong" : "quiet"}>
        {kind}: {about}
      </figcaption>
    </figure>
  );
};

const Parameter = ({
  parameter: { path, shape, weights, gradients },
  isLogarithmic,
}: {
  readonly parameter: ParameterHistograms;
  readonly isLogarithmic: boolean;
}): JSX.Element => (
  <li>
    <h3>
      {path} <span class="quiet">[{shape.join(", ")}]</span>
    </h3>
    <div class="pair">
      <Chart path={path} kind="weights" histogram={weights} isLogarithmic={isLogarithmic} />
      {gradients !== undefined && (
        <Chart path={path} kind="gradients" histogram={gradients} isLogarithmic={isLogarithmic} />
      )}
    </div>
  </li>
);

const Parameters = ({ all }: { readonly all: readonly ParameterHistograms[] }): JSX.Element => {
  const words = useSignal("");
  const isLogarithmic = useSignal(false);
  const most = useSignal(shownAtOnce);
  const found = all.filter(({ path }) =>
    words.value
      .toLowerCase()
      .split(/\s+/)
      .every((word) => path.toLowerCase().includes(word)),
  );
  const left = found.length - most.value;
  return (
    <>
      <div class="toolbar">
        <label>
          parameters{" "}
          <input
            type="search"
            placeholder="words of their names"
            value={words.value}
            onInput={(event) => {
              words.value = event.currentTarget.value;
              most.value = shownAtOnce;
            }}
          />
        </label>
        <label>
          <input
            type="checkbox"
            checked={isLogarithmic.value}
            onChange={(event) => {
              isLogarithmic.value = event.currentTarget.checked;
            }}
          />{" "}
          logarithmic counts
        </label>
        <span role="status" class="quiet">
          {found.length} of {all.length}
        </span>
      </div>
      <ul class="histograms">
        {found.slice(0, most.value).map((parameter) => (
          <Parameter key={parameter.path} parameter={parameter} isLogarithmic={isLogarithmic.value} />
        ))}
      </ul>
      {left > 0 && (
        <button
          type="button"
          onClick={() => {
            most.value += shownAtOnce;
          }}
        >
          show {Math.min(left, shownAtOnce)} more of {left}
        </button>
      )}
    </>
  );
};

const addressOf = (run: string, step?: number): string =>
  `/api/histograms?${new URLSearchParams({ run, ...(step !== undefined && { step: String(step) }) }).toString()}`;

/** Histograms of the weights and gradients of a run, and a button to request more. */
export const Histograms = ({ run }: { readonly run: RunFacts }): JSX.Element => {
  const isOpen = useSignal(false);
  const loaded = useSignal<ShownHistograms | undefined>(undefined);
  const checkpointHistograms = useSignal<StepHistograms | undefined>(undefined);
  const step = useSignal<number | undefined>(undefined);
  const status = useSignal("");
  /** Number of available histograms at the time of the user's request. Undefined: no request is pending. */
  const askedAt = useSignal<number | undefined>(undefined);
  const problem = useSignal("");
  const { id, state } = run;
  const isRunning = state === "running";
  const numTaken = run.rows["histograms"] ?? 0;

  useEffect(() => {
    checkpointHistograms.value = undefined;
    step.value = undefined;
    loaded.value = undefined;
    problem.value = "";
  }, [id]);
  useEffect(() => {
    const isUnanswered = askedAt.value === numTaken && !isRunning;
    status.value = isUnanswered ? "the run ended before it answered; its newest checkpoint has the weights" : "";
    askedAt.value = undefined;
  }, [id, numTaken, state]);
  useEffect(() => {
    let isWanted = isOpen.value;
    if (isWanted)
      fetch(addressOf(id, step.value))
        .then(async (response) => {
          const histograms = response.ok ? ((await response.json()) as ShownHistograms) : undefined;
          if (isWanted) loaded.value = histograms;
        })
        .catch(() => undefined); // the page already shows that the connection is lost
    return () => {
      isWanted = false;
    };
  }, [id, numTaken, isOpen.value, step.value]);

  const ask = async (): Promise<void> => {
    problem.value = "";
    status.value = isRunning
      ? "requested; the run answers before one of its next steps"
      : "reading the newest checkpoint";
    try {
      const response = await fetch(addressOf(id), { method: "POST" });
      const text = await response.text();
      if (!response.ok) throw new Error(text.trim());
      if (response.status === 202) {
        askedAt.value = numTaken;
        return;
      }
      checkpointHistograms.value = JSON.parse(text) as StepHistograms;
      status.value = "";
    } catch (error) {
      status.value = "";
      problem.value = (error as Error).message;
    }
  };

  const shown = checkpointHistograms.value ?? loaded.value?.shown ?? undefined;
  const steps = loaded.value?.steps ?? [];
  return (
    <details
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>weights and gradients</summary>
      <div class="toolbar">
        <button type="button" onClick={() => void ask()}>
          {isRunning ? "take histograms now" : "take histograms of the newest checkpoint"}
        </button>
        {steps.length > 0 && (
          <label>
            taken after step{" "}
            <select
              value={String(checkpointHistograms.value === undefined ? (shown?.step ?? "") : "")}
              onChange={(event) => {
                const chosen = Number(event.currentTarget.value);
                checkpointHistograms.value = undefined;
                step.value = chosen === steps[0] ? undefined : chosen; // follows later histograms
              }}
            >
              {checkpointHistograms.value !== undefined && <option value="">a checkpoint</option>}
              {steps.map((one) => (
                <option key={one} value={String(one)}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        )}
        <span role="status">{status.value}</span>
      </div>
      {problem.value !== "" && <p role="alert">{problem.value}</p>}
      {shown !== undefined && (
        <>
          <p class="quiet">
            {checkpointHistograms.value === undefined
              ? `after step ${shown.step}; gradients are those that the optimizer receives in the next step`
              : `weights of the checkpoint of step ${shown.step}; there are no gradients, because they are taken during a step and the run has ended`}
          </p>
          <Parameters all={shown.parameters} />
        </>
      )}
    </details>
  );
};
