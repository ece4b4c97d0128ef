import { type Signal, signal } from "@preact/signals";

export const schemeChoices = ["system", "light", "dark"] as const;

export type SchemeChoice = (typeof schemeChoices)[number];

const key = "skein-watch-scheme";

const kept = (): SchemeChoice => {
  try {
    return schemeChoices.find((choice) => choice === localStorage.getItem(key)) ?? "system";
  } catch {
    return "system";
  }
};

export const scheme: Signal<SchemeChoice> = signal(kept());
/** Grows when colours have changed, so that canvases are drawn anew. */
export const colourChanges: Signal<number> = signal(0);

const apply = (): void => {
  if (scheme.value === "system") delete document.documentElement.dataset["scheme"];
  else document.documentElement.dataset["scheme"] = scheme.value;
  colourChanges.value++;
};

export const chooseScheme = (choice: SchemeChoice): void => {
  scheme.value = choice;
  try {
    localStorage.setItem(key, choice);
  } catch {
    // a browser that keeps nothing shows it until it is closed
  }
  apply();
};

export const followScheme = (): void => {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
};

/** The value of a custom property of the page. */
export const colourNamed = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
