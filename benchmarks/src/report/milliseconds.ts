import { significant } from "@skein/measuring";

/** Formats seconds as milliseconds with three digits: "62.5", "1250". */
export const milliseconds = (seconds: number): string => significant(1000 * seconds);
