/** Kinds of marks. A kind has the same color in the bar, the timeline, the flame chart, the roofline and the tables. */
export const kinds = ["forward", "backward", "update", "communication", "exposed", "other"] as const;

export type Kind = (typeof kinds)[number];

export const kindNames: Readonly<Record<Kind, string>> = {
  forward: "forward",
  backward: "backward",
  update: "update",
  communication: "communication",
  exposed: "exposed communication",
  other: "other",
};

/**
 * Colors of marks, and of text on marks. The colors are distinguishable with every type of color blindness (checked by
 * `tokens.test.ts`).
 *
 * Source: Okabe and Ito, *Color Universal Design*, 2008; `other` is our own gray.
 */
export const kindColours: Readonly<Record<Kind, { readonly fill: string; readonly ink: string }>> = {
  forward: { fill: "#56b4e9", ink: "#000000" },
  backward: { fill: "#0072b2", ink: "#ffffff" },
  update: { fill: "#009e73", ink: "#000000" },
  communication: { fill: "#e69f00", ink: "#000000" },
  exposed: { fill: "#d55e00", ink: "#000000" },
  other: { fill: "#b4bac4", ink: "#000000" },
};

/** Colors of the page in the light and in the dark scheme; the browser selects the scheme that the reader prefers. */
export const schemes: Readonly<
  Record<"light" | "dark", Readonly<Record<"page" | "panel" | "line" | "edge" | "text" | "quiet" | "accent", string>>>
> = {
  light: {
    page: "#ffffff",
    panel: "#f5f6f8",
    line: "#d3d7de",
    edge: "#5b6472",
    text: "#16191d",
    quiet: "#4f5865",
    accent: "#005a9c",
  },
  dark: {
    page: "#14171c",
    panel: "#1e232b",
    line: "#3a424e",
    edge: "#98a3b3",
    text: "#eceff3",
    quiet: "#aeb7c4",
    accent: "#7cc4ff",
  },
};

const declarations = (colours: Readonly<Record<string, string>>): string =>
  Object.entries(colours)
    .map(([name, colour]) => `--${name}:${colour};`)
    .join("");

/** CSS rules that both schemes share: sizes, and a class for each kind. */
export const kindRules: string = [
  ":root{--gap:16px;--radius:8px;--small:12.5px}",
  ...kinds.map((kind) => {
    const { fill, ink } = kindColours[kind];
    return `.k-${kind}{--fill:${fill};--ink:${ink}}`;
  }),
].join("\n");

/**
 * Design tokens as CSS custom properties: colors of both schemes, a class for each kind, sizes. Printed pages always
 * use the light scheme.
 */
export const tokenRules: string = [
  `:root{color-scheme:light dark;${declarations(schemes.light)}}`,
  `@media screen and (prefers-color-scheme:dark){:root{${declarations(schemes.dark)}}}`,
  kindRules,
].join("\n");
