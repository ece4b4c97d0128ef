import type { TextColumn } from "@skein/report";

/** A column of a table of tries: all are as wide as they need to be, and ten letters at least. */
export const tryColumn = (heading: string, numeric: boolean): TextColumn => ({
  heading,
  numeric,
  weight: 1,
  cutAt: "end",
  least: 10,
});
