/** A node of the JSON Schema of job files, with the JSON Schema keywords that this schema uses. */
export interface SchemaNode {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly SchemaNode[];
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: boolean | SchemaNode;
  readonly required?: readonly string[];
  readonly items?: boolean | SchemaNode | readonly SchemaNode[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

/** One option of a job file. */
export interface JobKey {
  /** Path of the option: keys from the root of the job, such as `["data", "augment", "flip"]`. */
  readonly path: readonly string[];
  /**
   * Values of `kind` for which the option exists. Empty if the option exists for all kinds, or if the section has no
   * kinds.
   */
  readonly kinds: readonly string[];
  readonly isRequired: boolean;
  readonly node: SchemaNode;
}

/** Limits of JavaScript's integers and of signed 32-bit counts, which are not shown as bounds. */
const unbounded: ReadonlySet<number> = new Set([Number.MAX_SAFE_INTEGER, 2 ** 31 - 1]);

const show = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

const rangeOf = (node: SchemaNode): string => {
  const low = node.exclusiveMinimum ?? node.minimum;
  const high = node.exclusiveMaximum ?? node.maximum;
  const lower =
    low === undefined || low === Number.MIN_SAFE_INTEGER ? [] : [`${node.minimum === low ? "≥" : ">"} ${low}`];
  const upper = high === undefined || unbounded.has(high) ? [] : [`${node.maximum === high ? "≤" : "<"} ${high}`];
  return [...lower, ...upper].join(", ");
};

const isTuple = (items: SchemaNode["items"]): items is readonly SchemaNode[] => Array.isArray(items);

const listType = ({ items, minItems, maxItems }: SchemaNode): string => {
  if (isTuple(items)) return `[${items.map(typeOf).join(", ")}]`;
  const item = typeof items === "object" ? typeOf(items) : "any value";
  const least = minItems !== undefined && minItems > 0 ? `${minItems}` : "0";
  const count = maxItems === undefined ? `${least} or more` : `${least} to ${maxItems}`;
  return `list of ${count}: ${item}`;
};

/** Describes type and range of a value: `integer ≥ 1, ≤ 64`, `cpu or webgpu`. */
export const typeOf = (node: SchemaNode): string => {
  const choices = node.anyOf ?? node.oneOf;
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(" or ");
  if (node.const !== undefined) return show(node.const);
  if (node.enum !== undefined) return node.enum.map(show).join(", ");
  if (node.type === "array") return listType(node);
  if (node.type === "object") return node.properties === undefined ? "mapping" : "object";
  if (node.type === undefined) return "any value";
  return [node.type, rangeOf(node)].filter((part) => part !== "").join(" ");
};

/** Returns the values of `kind` that an object allows. Empty if the object has no `kind`. */
const kindsOf = ({ properties }: SchemaNode): readonly string[] => {
  const { const: only, enum: several = [only] } = properties?.["kind"] ?? {};
  return several.filter((kind) => typeof kind === "string");
};

/** Whether only programs and the trainer may set an option, as stated in the description in the schema. */
const isInternal = ({ description }: SchemaNode): boolean => description?.includes("not for job files") ?? false;

/** Returns the alternatives of a node that are objects with a `kind`. */
const alternatives = ({ oneOf, anyOf }: SchemaNode): readonly SchemaNode[] =>
  (oneOf ?? anyOf ?? []).filter((choice) => choice.properties !== undefined && !isInternal(choice));

const childrenOf = (parent: readonly string[], node: SchemaNode, kinds: readonly string[]): JobKey[] =>
  Object.entries(node.properties ?? {}).flatMap(([name, child]) =>
    isInternal(child) || (name === "kind" && kindsOf(node).length > 0)
      ? []
      : keysBelow([...parent, name], child, kinds, node.required?.includes(name) ?? false),
  );

const kindKey = (path: readonly string[], choices: readonly SchemaNode[]): JobKey[] => {
  const kinds = choices.flatMap(kindsOf);
  return kinds.length === 0 ? [] : [{ path: [...path, "kind"], kinds: [], isRequired: true, node: { enum: kinds } }];
};

/** Returns the option at a path, and all options below it. */
const keysBelow = (
  path: readonly string[],
  node: SchemaNode,
  kinds: readonly string[],
  isRequired: boolean,
): JobKey[] => {
  const choices = alternatives(node);
  const self: JobKey = { path, kinds, isRequired: isRequired && node.default === undefined, node };
  if (choices.length === 0) return [self, ...childrenOf(path, node, kinds)];
  const below = choices.flatMap((choice) => childrenOf(path, choice, kindsOf(choice)));
  return [self, ...kindKey(path, choices), ...merge(below, choices.flatMap(kindsOf).length)];
};

/** Merges options that are equal for several values of `kind`. */
const merge = (keys: readonly JobKey[], numKinds: number): JobKey[] => {
  const merged = new Map<string, JobKey>();
  for (const key of keys) {
    const id = JSON.stringify([key.path, key.node, key.isRequired]);
    const before = merged.get(id);
    merged.set(id, before === undefined ? key : { ...before, kinds: [...new Set([...before.kinds, ...key.kinds])] });
  }
  return [...merged.values()].map((key) => (key.kinds.length === numKinds ? { ...key, kinds: [] } : key));
};

/** Returns all options of a job file, parents before their children. */
export const jobKeys = (schema: SchemaNode): JobKey[] => childrenOf([], schema, []);
