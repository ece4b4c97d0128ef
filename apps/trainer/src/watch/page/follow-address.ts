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

/** Of one drag or one word that is typed the history of a browser keeps one place, milliseconds. */
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
 * Keep what the page shows in its address: a link that is sent opens the same view, and back and forward go through
 * views that a person has chosen. What the page changes by itself, such as showing a run that begins, takes the place
 * of the address before. What is damaged in an address is passed over.
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
  let told = takes.peek();
  effect(() => {
    const isChanged = address.value !== written;
    const isTold = takes.value !== told;
    told = takes.peek();
    if (!isChanged) return;
    if (isTold) return timer === undefined ? write() : undefined;
    isOfPerson = true;
    clearTimeout(timer);
    timer = setTimeout(write, settledAfter);
  });
  addEventListener("popstate", () => {
    clearTimeout(timer); // what was not settled yet belongs to the view that is left
    timer = undefined;
    isOfPerson = false;
    read();
    written = address.peek();
  });
};
