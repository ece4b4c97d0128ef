import type { TextColumn } from "@skein/report";

/** Column of a table of trials, as wide as its content, at least ten characters. */
export const trialColumn = (heading: string, numeric: boolean): TextColumn => ({
  heading,
  numeric,
  weight: 1,
  cutAt: "end",
  least: 10,
});
