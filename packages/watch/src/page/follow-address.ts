import { batch, computed, effect } from "@preact/signals";
import { addressOf, viewOf } from "./address.ts";
import {
  axis,
  chartWords,
  chooseWanted,
  chosen,
  detailed,
  filter,
  isLogarithmic,
  range,
  runs,
  smoothing,
  takes,
  traced,
} from "./store.ts";

/**
 * Time in milliseconds without changes after which the view becomes a history entry, so that dragging or typing creates
 * only one entry.
 */
const settledAfter = 400;

const address = computed(() =>
  addressOf({
    runs: runs.value.size === 0 ? undefined : [...chosen.value],
    filter: filter.value,
    charts: chartWords.value,
    axis: axis.value,
    smoothing: smoothing.value,
    isLogarithmic: isLogarithmic.value,
    range: range.value,
    detailed: detailed.value,
    traced: traced.value,
  }),
);

const read = (): void => {
  const view = viewOf(location.hash);
  batch(() => {
    filter.value = view.filter;
    chartWords.value = view.charts;
    axis.value = view.axis;
    smoothing.value = view.smoothing;
    isLogarithmic.value = view.isLogarithmic;
    range.value = view.range;
    detailed.value = view.detailed;
    traced.value = view.traced;
    chooseWanted(view.runs);
  });
};

/**
 * Synchronizes the view with the page's URL. A shared link opens the same view, and back and forward move between views
 * that the user selected. Changes by the page, such as displaying a new run, replace the current URL. Invalid settings
 * in a URL are ignored.
 */
export const followAddress = (): void => {
  read();
  let written = address.peek();
  let [timer, isOfPerson]: [ReturnType<typeof setTimeout> | undefined, boolean] = [undefined, false];
  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (address.peek() === written) return;
    written = address.peek();
    history[isOfPerson ? "pushState" : "replaceState"](null, "", `#${written}`);
    isOfPerson = false;
  };
  let numSeen = takes.peek();
  effect(() => {
    const isChanged = address.value !== written;
    const isServerUpdate = takes.value !== numSeen;
    numSeen = takes.peek();
    if (!isChanged) return;
    if (isServerUpdate) return timer === undefined ? write() : undefined;
    isOfPerson = true;
    clearTimeout(timer);
    timer = setTimeout(write, settledAfter);
  });
  addEventListener("popstate", () => {
    clearTimeout(timer); // a change not yet recorded belongs to the view that the user leaves
    timer = undefined;
    isOfPerson = false;
    read();
    written = address.peek();
  });
};
