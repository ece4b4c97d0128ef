/** A value in nested objects, and its path, such as `optimizer.kind`; "" for the root. */
export interface LeafValue {
  readonly path: string;
  readonly value: unknown;
}

/** Returns the leaves of nested objects: all values except non-empty objects. Lists and empty objects are leaves. */
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

/** Formats a leaf for display. */
export const leafText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
