import { type JobKey, jobKeys, type SchemaNode, typeOf } from "./job-keys.ts";

/** Job files whose values serve as examples, by file name. */
export type ExampleJobs = Readonly<Record<string, unknown>>;

const valueAt = (job: unknown, path: readonly string[], kinds: readonly string[]): unknown => {
  let value: unknown = job;
  for (const [i, key] of path.entries()) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const { kind } = value as { readonly kind?: unknown };
    const fits = kinds.length === 0 || i !== path.length - 1 || typeof kind !== "string" || kinds.includes(kind);
    value = fits ? (value as Readonly<Record<string, unknown>>)[key] : undefined;
  }
  return value;
};

const inYaml = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(inYaml).join(", ")}]`;
  if (typeof value === "object" && value !== null)
    return `{ ${Object.entries(value)
      .map(([key, inner]) => `${key}: ${inYaml(inner)}`)
      .join(", ")} }`;
  return String(value);
};

/**
 * Returns a value that the schema allows: the default, the first choice, or the smallest number. Undefined for free
 * text.
 */
const plainExample = (node: SchemaNode): unknown => {
  if (node.default !== undefined) return node.default;
  if (node.const !== undefined) return node.const;
  if (node.enum !== undefined) return node.enum[0];
  const choices = node.anyOf ?? node.oneOf;
  if (choices !== undefined) return plainExample(choices[0]!);
  if (node.type === "boolean") return true;
  if (node.type === "integer") return Math.max(node.minimum ?? 1, 1);
  if (node.type === "number") return node.minimum ?? (node.exclusiveMaximum === 1 || node.maximum === 1 ? 0.5 : 1);
  return undefined;
};

const exampleOf = ({ path, kinds, node }: JobKey, jobs: ExampleJobs): string => {
  const found = Object.values(jobs)
    .map((job) => valueAt(job, path, kinds))
    .find((value) => value !== undefined && (typeof value !== "object" || Array.isArray(value)));
  const value = found ?? plainExample(node);
  return value === undefined || (typeof value === "object" && !Array.isArray(value)) ? "" : inYaml(value);
};

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ").replaceAll("<", "&lt;");

const code = (text: string): string => (text === "" ? "" : `\`${text.replaceAll("|", "\\|")}\``);

const defaultOf = ({ node, isRequired }: JobKey): string => {
  if (isRequired) return "required";
  return node.default === undefined ? "" : code(inYaml(node.default));
};

const row = (key: JobKey, jobs: ExampleJobs): string => {
  const { path, kinds, node } = key;
  const only = kinds.length === 0 ? "" : `With kind ${kinds.map(code).join(", ")}. `;
  const cells = [
    code(path.join(".")),
    cell(typeOf(node)),
    defaultOf(key),
    code(exampleOf(key, jobs)),
    `${only}${cell(node.description ?? "")}`.trim(),
  ];
  return `| ${cells.join(" | ")} |`;
};

const table = (keys: readonly JobKey[], jobs: ExampleJobs): string[] => [
  "| key | type | default | example | meaning |",
  "| --- | --- | --- | --- | --- |",
  ...keys.map((key) => row(key, jobs)),
];

const introduction = `# Job reference

Every option of a job file, with key, type, range, default, an example and its meaning. This page is written from the
schema by which \`skein-train validate\` checks files. Examples are from the sample jobs of \`skein-train\`, if a sample
job uses the option. An option that differs between values of \`kind\` has one row for each meaning.

\`skein-train schema\` prints the same schema as JSON Schema. An editor with the YAML language server completes and
checks keys in a job file that begins with:

\`\`\`yaml
# yaml-language-server: $schema=./node_modules/skein-train/dist/job.schema.json
\`\`\`
`;

/**
 * Returns the job reference as Markdown: a table of the options without nested options, then a table for each option
 * with nested options.
 *
 * @param schema JSON Schema of a job file as written by the user.
 */
export const jobReference = (schema: SchemaNode, jobs: ExampleJobs): string => {
  const keys = jobKeys(schema);
  const sections = [...new Set(keys.filter(({ path }) => path.length > 1).map(({ path }) => path[0]!))];
  const simple = keys.filter(({ path }) => !sections.includes(path[0]!));
  return [
    introduction,
    "## The run",
    "",
    ...table(simple, jobs),
    ...sections.flatMap((section) => {
      const [self, ...inside] = keys.filter(({ path }) => path[0] === section);
      const preset = self!.node.default === undefined ? "" : ` Default: ${code(inYaml(self!.node.default))}.`;
      const text = `${self!.node.description ?? ""}${preset}`.trim();
      return ["", `## \`${section}\``, "", ...(text === "" ? [] : [cell(text), ""]), ...table(inside, jobs)];
    }),
    "",
  ].join("\n");
};
