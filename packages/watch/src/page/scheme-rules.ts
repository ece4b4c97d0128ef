import { schemes } from "@skein/report";

/**
 * Colors of runs by scheme. All colors are distinguishable with each type of color blindness, and have a contrast ratio
 * of at least 3:1 to the page.
 */
const runColours: Readonly<Record<"light" | "dark", readonly string[]>> = {
  light: ["#0072b2", "#c94f00", "#00805f", "#a9478a", "#7f6500", "#4a4fc4", "#5b6472", "#b3003c"],
  dark: ["#56b4e9", "#e69f00", "#2ec4a0", "#e08fc0", "#f0e442", "#a3a8ff", "#b4bac4", "#ff8a75"],
};
const states = { light: { good: "#00714f", bad: "#b3261e" }, dark: { good: "#2ec4a0", bad: "#ff8a75" } } as const;

const rulesOf = (scheme: "light" | "dark"): string =>
  [
    `color-scheme:${scheme}`,
    ...Object.entries({ ...schemes[scheme], ...states[scheme] }).map(([name, colour]) => `--${name}:${colour}`),
    ...runColours[scheme].map((colour, index) => `--run-${index}:${colour}`),
  ].join(";");

/**
 * CSS custom properties of the light and the dark color scheme. The system's scheme applies unless the user selects a
 * scheme on the page.
 */
export const schemeRules: string = [
  `:root{${rulesOf("light")}}`,
  `@media (prefers-color-scheme:dark){:root:not([data-scheme=light]){${rulesOf("dark")}}}`,
  `:root[data-scheme=dark]{${rulesOf("dark")}}`,
  ...runColours.light.map((_, index) => `.run-${index}{--own:var(--run-${index})}`),
].join("\n");
