import { type Axis, axes } from "./axis-x.ts";

/** View settings of the user, which are part of the page's URL. */
export interface View {
  /** Ids of the runs whose lines are drawn, in the order of selection. Undefined: no run has been selected yet. */
  readonly runs: readonly string[] | undefined;
  /** Filter of the run list. */
  readonly filter: string;
  /** Words that the user searches for in chart titles and quantity names. */
  readonly charts: string;
  readonly axis: Axis;
  /** Smoothing weight, 0 to 0.99. */
  readonly smoothing: number;
  readonly isLogarithmic: boolean;
  /** Visible range of the x axis. Undefined: the complete axis. */
  readonly range: { readonly from: number; readonly to: number } | undefined;
  /** Id of the run whose details are open. Undefined: no details are open. */
  readonly detailed: string | undefined;
  /** Name of the trace whose timeline is open, in the run `detailed`. Undefined: no timeline is open. */
  readonly traced: string | undefined;
}

export const defaultView: View = {
  runs: undefined,
  filter: "",
  charts: "",
  axis: "step",
  smoothing: 0,
  isLogarithmic: false,
  range: undefined,
  detailed: undefined,
  traced: undefined,
};

export const maxSmoothing = 0.99;

const rangeIn = (text: string | null): View["range"] => {
  const [, first, last] = /^([^~]+)~([^~]+)$/.exec(text ?? "") ?? [];
  const [from, to] = [Number(first), Number(last)];
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? { from, to } : undefined;
};

const smoothingIn = (text: string | null): number => {
  const weight = text === null || text === "" ? 0 : Number(text);
  return weight >= 0 && weight <= maxSmoothing ? weight : 0;
};

/**
 * Returns the fragment of the page's URL, after `#`. Default settings are omitted. An empty selection of runs is
 * written as `run=`.
 */
export const addressOf = (view: View): string => {
  const words = new URLSearchParams();
  if (view.runs?.length === 0) words.append("run", "");
  for (const id of view.runs ?? []) words.append("run", id);
  const { range } = view;
  for (const [key, text] of [
    ["filter", view.filter],
    ["charts", view.charts],
    ["axis", view.axis === defaultView.axis ? "" : view.axis],
    ["smoothing", view.smoothing === 0 ? "" : String(view.smoothing)],
    ["scale", view.isLogarithmic ? "log" : ""],
    ["range", range === undefined ? "" : `${range.from}~${range.to}`],
    ["details", view.detailed ?? ""],
    ["trace", view.traced ?? ""],
  ] as const)
    if (text !== "") words.set(key, text);
  return words.toString();
};

/**
 * Parses the view from a URL fragment. Invalid or missing settings are replaced by defaults.
 *
 * @param address Fragment with or without `#`.
 */
export const viewOf = (address: string): View => {
  const words = new URLSearchParams(address.replace(/^#/, ""));
  const runs = [...new Set(words.getAll("run"))];
  return {
    runs: runs.length === 0 ? undefined : runs.filter((id) => id !== ""),
    filter: words.get("filter") ?? "",
    charts: words.get("charts") ?? "",
    axis: axes.find((axis) => axis === words.get("axis")) ?? defaultView.axis,
    smoothing: smoothingIn(words.get("smoothing")),
    isLogarithmic: words.get("scale") === "log",
    range: rangeIn(words.get("range")),
    detailed: words.get("details") || undefined,
    traced: words.get("trace") || undefined,
  };
};
