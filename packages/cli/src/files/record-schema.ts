import { z } from "zod";

/**
 * Returns the schema of an object with arbitrary keys, whose values match `value`. Unlike `z.record`, which drops the
 * key `__proto__`, the schema keeps every own key. Users choose the names of fields, parameters and metrics, so that
 * any key may occur.
 */
export const recordSchema = <Value>(value: z.ZodType<Value>): z.ZodType<Readonly<Record<string, Value>>> =>
  z.transform((input, context): Readonly<Record<string, Value>> => {
    if (typeof input !== "object" || input === null || Array.isArray(input)) {
      context.issues.push({ code: "invalid_type", expected: "record", input });
      return z.NEVER;
    }
    const entries = Object.entries(input).map(([key, one]): [string, Value] => {
      const { data, error } = value.safeParse(one);
      for (const issue of error?.issues ?? [])
        context.issues.push({ ...issue, path: [key, ...issue.path], input: one } as z.core.$ZodRawIssue);
      return [key, data as Value];
    });
    return Object.fromEntries(entries);
  });
