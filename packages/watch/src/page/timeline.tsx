import { type Signal, useSignal } from "@preact/signals";
import { bytesText } from "@skein/report";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ListedTrace } from "../run-listings.ts";
import { traced } from "./store.ts";
import { type TraceScript, TraceWindows } from "./trace-windows.tsx";

type TimelineContent = JSX.Element | { readonly problem: string } | undefined;

/** URL path of the trace script, which is a separate bundle. */
const traceScript = "/trace.js";

const load = async (
  run: string,
  name: string,
  content: Signal<TimelineContent>,
  isWanted: () => boolean,
): Promise<void> => {
  const show = (what: TimelineContent): void => {
    if (isWanted()) content.value = what;
  };
  try {
    const response = await fetch(`/api/trace?${new URLSearchParams({ run, name }).toString()}`);
    const text = await response.text();
    if (!response.ok) return show({ problem: text });
    const script = (await import(traceScript)) as TraceScript;
    show(<TraceWindows script={script} name={name} view={script.readTraceText(text, name)} />);
  } catch (error) {
    show({ problem: (error as Error).message });
  }
};

/** Timeline of a trace in the folder of a run, loaded on request. */
export const Timeline = ({ run, trace }: { readonly run: string; readonly trace: ListedTrace }): JSX.Element => {
  const { name, bytes, writtenAt } = trace;
  const isOpen = traced.value === name;
  const content = useSignal<TimelineContent>(undefined);
  useEffect(() => {
    let isWanted = isOpen;
    content.value = undefined;
    if (isOpen) void load(run, name, content, () => isWanted);
    return () => {
      isWanted = false;
    };
  }, [run, name, writtenAt, isOpen]);
  return (
    <>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => {
          traced.value = isOpen ? undefined : name;
        }}
      >
        timeline<span class="unseen"> of {name}</span>
      </button>{" "}
      {name}, {bytesText(bytes)}
      {isOpen &&
        (content.value === undefined ? (
          <p role="status">reading {name}</p>
        ) : "problem" in content.value ? (
          <p role="alert">{content.value.problem}</p>
        ) : (
          content.value
        ))}
    </>
  );
};
