import type { TextColumn } from "@skein/report";

/**
 * Returns the layout of a column in a table of trials. If the table is too wide, the column is shortened to at least
 * ten characters.
 */
export const trialColumn = (heading: string, numeric: boolean): TextColumn => ({
  heading,
  numeric,
  weight: 1,
  cutAt: "end",
  least: 10,
});
