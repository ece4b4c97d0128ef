/** A value within nested objects, and where it lies: `optimizer.kind`; "" for the whole. */
export interface LeafValue {
  readonly path: string;
  readonly value: unknown;
}

/** Whatever is no object with keys: lists and empty objects, too. */
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

/** A leaf for people. */
export const leafText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
