/** Values of nested objects by where they lie, as text, for people. */
export const flatValues = (value: unknown): readonly (readonly [key: string, text: string])[] => {
  const entries: [string, string][] = [];
  const visit = (part: unknown, path: string): void => {
    if (typeof part === "object" && part !== null && !Array.isArray(part))
      for (const [key, inner] of Object.entries(part)) visit(inner, path === "" ? key : `${path}.${key}`);
    else if (part !== null && part !== undefined)
      entries.push([path, typeof part === "string" ? part : JSON.stringify(part)]);
  };
  visit(value, "");
  return entries;
};
