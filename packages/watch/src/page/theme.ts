import { type Signal, signal } from "@preact/signals";

export const schemeChoices = ["system", "light", "dark"] as const;

export type SchemeChoice = (typeof schemeChoices)[number];

const key = "skein-watch-scheme";

const savedChoice = (): SchemeChoice => {
  try {
    return schemeChoices.find((choice) => choice === localStorage.getItem(key)) ?? "system";
  } catch {
    return "system";
  }
};

export const scheme: Signal<SchemeChoice> = signal(savedChoice());
/** Version of the colors; incremented when colors change, so that canvases are redrawn. */
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
    // without storage, the choice is lost when the page is closed
  }
  apply();
};

export const followScheme = (): void => {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
};

/** Returns the value of a CSS custom property of the page. */
export const colourNamed = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
