import { type Axis, axes } from "./axis-x.ts";

/** View settings of the user, which a link to the page must carry. */
export interface View {
  /** Runs whose lines are drawn, in the order of selection. Absent: no run was selected yet. */
  readonly runs: readonly string[] | undefined;
  /** Filter of the run list. */
  readonly filter: string;
  /** Words that filter the charts. */
  readonly charts: string;
  readonly axis: Axis;
  /** Smoothing weight, 0 to 0.99. */
  readonly smoothing: number;
  readonly isLogarithmic: boolean;
  /** Visible range of the axis. Absent: the whole axis. */
  readonly range: { readonly from: number; readonly to: number } | undefined;
  /** Id of the run whose details are open. */
  readonly detailed: string | undefined;
  /** Name of the trace of that run whose timeline is open. */
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
 * Fragment of the page's address after `#`. Default settings are omitted; an empty selection of runs is written as
 * `run=`.
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
 * Parse the view from an address. Invalid or unknown parts get their defaults.
 *
 * @param address with or without its `#`.
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
