import type { TextColumn } from "@skein/report";

/** Returns a column of a table of trials, as wide as the column's content, but at least ten characters. */
export const trialColumn = (heading: string, numeric: boolean): TextColumn => ({
  heading,
  numeric,
  weight: 1,
  cutAt: "end",
  least: 10,
});
