import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { RunFacts } from "@skein/run-files/node";
import type { Axis } from "./axis-x.ts";
import { applyRows, type LoadedTables } from "./decode-rows.ts";
import { matchesFilter } from "./filter-runs.ts";

/** A run whose metrics are loaded in the page. */
export interface LoadedRun extends LoadedTables {
  /** Version of the metrics; incremented after each message with new rows. */
  readonly version: Signal<number>;
  busy: boolean;
  again: boolean;
}

export const connection: Signal<"connecting" | "live" | "lost"> = signal("connecting");
export const runs: Signal<ReadonlyMap<string, RunFacts>> = signal(new Map());
export const chosen: Signal<ReadonlySet<string>> = signal(new Set());
export const filter: Signal<string> = signal("");
/** Words by which charts are filtered by title. Empty: all charts are shown. */
export const chartWords: Signal<string> = signal("");
export const axis: Signal<Axis> = signal("step");
export const smoothing: Signal<number> = signal(0);
export const isLogarithmic: Signal<boolean> = signal(false);
/** Visible range of the x axis of all charts. Undefined: the complete axis. */
export const range: Signal<{ readonly from: number; readonly to: number } | undefined> = signal(undefined);
/** Position of the pointer, or of the keyboard marker, on the x axis. */
export const mark: Signal<number | undefined> = signal(undefined);
export const detailed: Signal<string | undefined> = signal(undefined);
/** Name of the trace whose timeline is open, in the run `detailed`. */
export const traced: Signal<string | undefined> = signal(undefined);
/** Number of updates from the server. Used to distinguish changes by the server from changes by the user. */
export const takes: Signal<number> = signal(0);

export const listed: ReadonlySignal<readonly RunFacts[]> = computed(() =>
  [...runs.value.values()]
    .filter((run) => matchesFilter(run, filter.value))
    .toSorted((a, b) => b.writtenAt - a.writtenAt || (a.id < b.id ? -1 : 1)),
);

/** Runs whose lines are drawn: selected runs that match the filter, in the order of selection. */
export const shown: ReadonlySignal<readonly RunFacts[]> = computed(() => {
  const left = new Map(listed.value.map((run) => [run.id, run]));
  return [...chosen.value].flatMap((id) => left.get(id) ?? []);
});

/**
 * Ids of the runs whose lines are drawn, as JSON text. The text does not change with each new line of a run, so that
 * dependent values are not recomputed.
 */
export const shownIds: ReadonlySignal<string> = computed(() => JSON.stringify(shown.value.map(({ id }) => id)));

/** Number of colors for runs. */
export const colours = 8;
const colourOf = new Map<string, number>();

/**
 * Returns the color index of a run, 0 to 7, which is constant while the run is selected. With more than 8 runs, colors
 * repeat.
 */
export const colourIndex = (id: string): number => colourOf.get(id) ?? 0;

const giveColour = (id: string): void => {
  if (colourOf.has(id)) return;
  const uses = Array<number>(colours).fill(0);
  for (const index of colourOf.values()) uses[index]!++;
  colourOf.set(id, uses.indexOf(Math.min(...uses)));
};

export const choose = (ids: readonly string[], isChosen: boolean): void => {
  const next = new Set(chosen.value);
  for (const id of ids) {
    if (isChosen) {
      giveColour(id);
      next.add(id);
    } else {
      colourOf.delete(id);
      next.delete(id);
    }
  }
  chosen.value = next;
};

/** Ids of the runs named in the URL. Undefined: the URL names no run. */
let wanted: readonly string[] | undefined;

/** Selects the runs named in the URL that exist, or the newest run if no named run exists. */
const chooseDefaults = (): void => {
  const there = wanted?.filter((id) => runs.value.has(id));
  const next =
    there === undefined || (there.length === 0 && wanted!.length > 0)
      ? listed.value.slice(0, 1).map(({ id }) => id)
      : there;
  const kept = new Set(next);
  for (const id of chosen.value) if (!kept.has(id)) colourOf.delete(id);
  for (const id of next) giveColour(id);
  chosen.value = kept;
};

/** Shows the runs named in a URL, immediately or after the list of runs is loaded. */
export const chooseWanted = (ids: readonly string[] | undefined): void => {
  wanted = ids;
  if (runs.value.size > 0) chooseDefaults();
};

const loaded = new Map<string, LoadedRun>();

export const loadedRun = (id: string): LoadedRun => {
  let run = loaded.get(id);
  if (run === undefined) {
    run = { generation: -1, byType: new Map(), version: signal(0), busy: false, again: false };
    loaded.set(id, run);
  }
  return run;
};

/** Requests the missing rows of a run. If a request is already in progress, sends another request afterwards. */
const pull = async (id: string): Promise<void> => {
  const run = loadedRun(id);
  if (run.busy) {
    run.again = true;
    return;
  }
  run.busy = true;
  try {
    do {
      run.again = false;
      const known = [...run.byType].map(([type, rows]) => `${encodeURIComponent(type)}:${rows.length}`).join(",");
      const query = new URLSearchParams({ run: id, generation: String(run.generation), known });
      const response = await fetch(`/api/rows?${query.toString()}`);
      if (!response.ok) return;
      applyRows(run, await response.arrayBuffer());
      run.version.value++;
    } while (run.again);
  } catch {
    // The connection is lost. After reconnecting, all data is requested again.
  } finally {
    run.busy = false;
  }
};

const isBehind = ({ id, generation, rows, loaded: share }: RunFacts): boolean => {
  if (share !== null) return false; // rows are sent after the server has read the complete file
  const run = loaded.get(id);
  return (
    run === undefined ||
    run.generation !== generation ||
    Object.entries(rows).some(([type, count]) => (run.byType.get(type)?.length ?? 0) < count)
  );
};

const maxPreselected = 8;

const take = (updated: readonly RunFacts[], gone: readonly string[], isAll: boolean): void => {
  const before = runs.value;
  const next = new Map(isAll ? [] : before);
  for (const run of updated) next.set(run.id, run);
  for (const id of gone) next.delete(id);
  const vanished = [...before.keys()].filter((id) => !next.has(id));
  const fresh = updated.filter(({ id }) => !before.has(id));
  takes.value++;
  runs.value = next;
  if (vanished.length > 0) choose(vanished, false);
  for (const id of vanished) loaded.delete(id);
  // Initially shows the newest run, or the runs named in the URL; later also each run that begins while the page is
  // open.
  if (chosen.value.size === 0 && before.size === 0) chooseDefaults();
  else if (!isAll && chosen.value.size < maxPreselected)
    choose(
      fresh.filter(({ state }) => state === "running").map(({ id }) => id),
      true,
    );
};

/** Listens to the server, and keeps the page up to date. */
export const connect = (): void => {
  const source = new EventSource("/api/events");
  let received: RunFacts[] = []; // the list of all runs arrives in several messages
  source.addEventListener("open", () => {
    connection.value = "live";
  });
  source.addEventListener("error", () => {
    connection.value = "lost";
    received = [];
  });
  source.addEventListener("all", ({ data }: MessageEvent<string>) => {
    const piece = JSON.parse(data) as { runs: RunFacts[]; isWhole: boolean };
    received = [...received, ...piece.runs];
    if (!piece.isWhole) return;
    const all = received;
    received = [];
    batch(() => take(all, [], true));
  });
  source.addEventListener("changed", ({ data }: MessageEvent<string>) => {
    const changes = JSON.parse(data) as { runs: RunFacts[]; gone: string[] };
    batch(() => take(changes.runs, changes.gone, false));
  });
  effect(() => {
    for (const run of shown.value) if (isBehind(run)) void pull(run.id);
  });
};
