import { type Signal, useSignal } from "@preact/signals";
import { bytesText } from "@skein/report";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { ListedTrace } from "../run-listings.ts";
import { traced } from "./store.ts";
import { type TraceScript, TraceWindows } from "./trace-windows.tsx";

type Told = JSX.Element | { readonly problem: string } | undefined;

/** Path of the trace script on the server; it is a separate bundle. */
const traceScript = "/trace.js";

const load = async (run: string, name: string, told: Signal<Told>, isWanted: () => boolean): Promise<void> => {
  const tell = (what: Told): void => {
    if (isWanted()) told.value = what;
  };
  try {
    const response = await fetch(`/api/trace?${new URLSearchParams({ run, name }).toString()}`);
    const text = await response.text();
    if (!response.ok) return tell({ problem: text });
    const script = (await import(traceScript)) as TraceScript;
    tell(<TraceWindows script={script} name={name} view={script.readTraceText(text, name)} />);
  } catch (error) {
    tell({ problem: (error as Error).message });
  }
};

/** Timeline of a trace in the folder of a run, loaded on request. */
export const Timeline = ({ run, trace }: { readonly run: string; readonly trace: ListedTrace }): JSX.Element => {
  const { name, bytes, writtenAt } = trace;
  const isOpen = traced.value === name;
  const told = useSignal<Told>(undefined);
  useEffect(() => {
    let isWanted = isOpen;
    told.value = undefined;
    if (isOpen) void load(run, name, told, () => isWanted);
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
        (told.value === undefined ? (
          <p role="status">reading {name}</p>
        ) : "problem" in told.value ? (
          <p role="alert">{told.value.problem}</p>
        ) : (
          told.value
        ))}
    </>
  );
};
