/** A value in nested objects, and its path: `optimizer.kind`; "" for the whole value. */
export interface LeafValue {
  readonly path: string;
  readonly value: unknown;
}

/** Leaves of nested objects: all values except objects with keys, so lists and empty objects are leaves. */
export const leafValues = (whole: unknown): LeafValue[] => {
  const leaves: LeafValue[] = [];
  const visit = (value: unknown, path: string): void => {
    if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0)
      for (const [key, inner] of Object.entries(value)) visit(inner, path === "" ? key : `${path}.${key}`);
    else leaves.push({ path, value });
  };
  visit(whole, "");
  return leaves;
};

/** Format a leaf for display. */
export const leafText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
