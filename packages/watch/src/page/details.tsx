import { signal } from "@preact/signals";
import { bytesText } from "@skein/report";
import { leafText, leafValues, maxTraceBytes } from "@skein/run-files";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { RunDetails } from "../run-details.ts";
import { Histograms } from "./histograms.tsx";
import { Samples } from "./samples.tsx";
import { Timeline } from "./timeline.tsx";
import { detailed, runs } from "./store.ts";

const loaded = signal<{ readonly id: string; readonly details: RunDetails } | undefined>(undefined);

/** Error if the details of a run could not be read. */
const failed = signal<{ readonly id: string; readonly message: string } | undefined>(undefined);

const load = async (id: string): Promise<void> => {
  try {
    const response = await fetch(`/api/run?${new URLSearchParams({ run: id }).toString()}`);
    if (detailed.peek() !== id) return;
    failed.value = response.ok ? undefined : { id, message: `details: ${await response.text()}` };
    if (response.ok) loaded.value = { id, details: (await response.json()) as RunDetails };
  } catch {
    // the page already shows that the connection is lost
  }
};

const status = signal("");

const Copied = ({ text, what }: { readonly text: string; readonly what: string }): JSX.Element => (
  <span class="copied">
    <code>{text}</code>{" "}
    <button
      type="button"
      onClick={() => {
        navigator.clipboard.writeText(text).then(
          () => {
            status.value = `copied ${what}`;
          },
          () => {
            status.value = "this browser does not let pages copy; select the text";
          },
        );
      }}
    >
      copy<span class="unseen"> {what}</span>
    </button>
  </span>
);

/** Whether the details of a run show a leaf value. Null and empty objects are not shown. */
const hasValue = (value: unknown): boolean => (typeof value === "object" ? Array.isArray(value) : value !== undefined);

const Facts = ({ title, value }: { readonly title: string; readonly value: unknown }): JSX.Element | null => {
  const entries = leafValues(value).filter((leaf) => hasValue(leaf.value));
  if (entries.length === 0) return null;
  return (
    <details>
      <summary>{title}</summary>
      <dl class="facts">
        {entries.map((leaf) => (
          <div key={leaf.path}>
            <dt>{leaf.path}</dt>
            <dd>{leafText(leaf.value)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
};

/** Details of the selected run: all properties except its metrics. */
export const Details = (): JSX.Element | null => {
  const id = detailed.value;
  const run = id === undefined ? undefined : runs.value.get(id);
  useEffect(() => {
    if (id !== undefined) void load(id);
  }, [id, run?.rows["checkpoint"], run?.state]);
  if (id === undefined || run === undefined) return null;
  const own = loaded.value?.id === id ? loaded.value.details : undefined;
  return (
    <section class="details" aria-labelledby="details-heading">
      <h2 id="details-heading">{id}</h2>
      <p>
        <span class={`state ${run.state}`}>{run.state}</span>
        {run.reason === null ? "" : `: ${run.reason}`}
        {run.skippedLines > 0 && `; ${run.skippedLines} lines of its metrics could not be read`}
      </p>
      {run.fault !== null && <p class="fault">{run.fault}</p>}
      {failed.value?.id === id && <p class="fault">{failed.value.message}</p>}
      {own !== undefined && (
        <>
          {own.resume !== null && (
            <p>
              resume it: <Copied text={own.resume} what="the command" />
            </p>
          )}
          {own.traces.map(({ command, ...trace }) => (
            <div class="trace" key={trace.name}>
              {trace.bytes <= maxTraceBytes ? (
                <Timeline run={id} trace={trace} />
              ) : (
                `${trace.name}, ${bytesText(trace.bytes)}, is too large for a page`
              )}
              <p>
                a separate page, with operators: <Copied text={command} what="the command" />
              </p>
            </div>
          ))}
          {own.checkpoints.length > 0 && (
            <details open>
              <summary>{own.checkpoints.length} checkpoints</summary>
              <ul>
                {own.checkpoints.map(({ step, path }) => (
                  <li key={path}>
                    step {step}: <Copied text={path} what={`the path of step ${step}`} />
                  </li>
                ))}
              </ul>
            </details>
          )}
          <Samples run={id} evaluations={run.rows["evaluation"] ?? 0} />
          <Histograms key={id} run={run} />
          <Facts title="summary" value={own.summary} />
          <Facts title="provenance" value={own.provenance} />
        </>
      )}
      <Facts title="job" value={run.options} />
      <p role="status">{status.value}</p>
    </section>
  );
};
