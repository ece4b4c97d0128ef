import type { TextColumn } from "@skein/report";

/** Returns a column for a table of trials. The column is as wide as its content, at least ten characters. */
export const trialColumn = (heading: string, numeric: boolean): TextColumn => ({
  heading,
  numeric,
  weight: 1,
  cutAt: "end",
  least: 10,
});
