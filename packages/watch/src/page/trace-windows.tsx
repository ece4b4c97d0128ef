import { useSignal } from "@preact/signals";
import { secondsText } from "@skein/report";
import type { RankSpans } from "@skein/tensor-core";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type * as traceScript from "./trace-script.ts";
import type { TraceView } from "./trace-view.ts";

/** Exports of the script that reads traces. */
export type TraceScript = typeof traceScript;

/** Maximum number of names per track in the table. */
const maxRows = 12;

const Figure = ({
  script,
  ranks,
  hasSteps,
  label,
}: {
  readonly script: TraceScript;
  readonly ranks: readonly RankSpans[];
  readonly hasSteps: boolean;
  readonly label: string;
}): JSX.Element => {
  const container = useRef<HTMLDivElement>(null);
  const __html = useMemo(() => script.timelineHtml(ranks, hasSteps, label), [ranks, hasSteps, label]);
  useEffect(() => {
    script.zoom(container.current!);
  }, []);
  return (
    <div ref={container}>
      {/* Text from the trace is escaped where the figure is created. */}
      <figure data-timeline="" dangerouslySetInnerHTML={{ __html }} />
    </div>
  );
};

const Table = ({
  script,
  ranks,
}: {
  readonly script: TraceScript;
  readonly ranks: readonly RankSpans[];
}): JSX.Element => (
  <div class="scroll" tabIndex={0} role="region" aria-label="timeline, data">
    <table>
      <caption>Longest spans on each track of each rank, up to {maxRows} names</caption>
      <thead>
        <tr>
          {["rank", "track", "what", "times", "together"].map((name) => (
            <th scope="col" key={name}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {script.rowsOfSpans(ranks, maxRows).map(({ rank, track, name, calls, seconds }) => (
          <tr key={`${rank} ${track} ${name}`}>
            <td>{rank}</td>
            <td>{track}</td>
            <th scope="row">{name}</th>
            <td>{calls}</td>
            <td>{secondsText(seconds)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

/** View of a trace: selection of a step, timeline, and table. */
export const TraceWindows = ({
  script,
  view,
  name,
}: {
  readonly script: TraceScript;
  readonly view: TraceView;
  readonly name: string;
}): JSX.Element => {
  const windows = useMemo(() => script.windowsOf(view, secondsText), [view]);
  const key = useSignal(windows[0]?.key);
  const isTable = useSignal(false);
  const shown = windows.find((one) => one.key === key.value) ?? windows[0];
  const all = useMemo(() => shown?.ranks() ?? [], [shown]);
  const ranks = useMemo(() => script.selectRanks(all), [all]);
  if (shown === undefined) return <p>{name} holds no span.</p>;
  return (
    <>
      <div class="toolbar">
        <label>
          show{" "}
          <select
            value={shown.key}
            onChange={(event) => {
              key.value = event.currentTarget.value;
            }}
          >
            {windows.map((one) => (
              <option key={one.key} value={one.key}>
                {one.title}
              </option>
            ))}
          </select>
        </label>
      </div>
      <p class="quiet">
        {script.timelineHelp}
        {view.isCut && " The trace was truncated: the part before that is shown."}
        {ranks.length < all.length &&
          ` ${ranks.length} of ${all.length} ranks are shown: the ranks that wait least, and the ranks that wait most.`}
      </p>
      <Figure
        key={shown.key}
        script={script}
        ranks={ranks}
        hasSteps={shown.hasSteps}
        label={`Timeline of ${name}: ${shown.title}`}
      />
      <details
        onToggle={(event) => {
          isTable.value = event.currentTarget.open;
        }}
      >
        <summary>data table</summary>
        {isTable.value && <Table script={script} ranks={ranks} />}
      </details>
    </>
  );
};
