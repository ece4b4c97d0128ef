import { type Alias, type Document, LineCounter, parseAllDocuments, parseDocument, visit } from "yaml";
import { ConfigError } from "../errors.ts";

/**
 * Maximum length of a job in YAML, in characters; people write a few hundred. The time of the YAML parser grows with
 * the square of the keys of a mapping. Longer jobs are JSON, as a run saves them.
 */
export const maxYamlLength: number = 32 * 1024;

/**
 * Unknown tags are faults, and the dates, sets and merged keys of YAML 1.1 are not offered, even where a file asks for
 * that version.
 */
export const yamlOptions = { schema: "core", prettyErrors: false, logLevel: "error" } as const;

/** The first line of what a parser says, fit to be printed. */
export const firstLine = (error: unknown): string =>
  /call stack/.test((error as Error).message)
    ? "its values are nested too deeply"
    : (error as Error).message.split("\n")[0]!.replaceAll(/\p{C}/gu, "?").slice(0, 120);

/** A document of a YAML text, and what it says. */
export interface ParsedYaml {
  readonly document: Document;
  readonly lines: LineCounter;
  readonly root: unknown;
}

/**
 * The documents of a YAML text: those that say something, where there are several.
 *
 * @throws ConfigError for what is no YAML, with the place of the first fault.
 */
export const parseYaml = (text: string, file: string): readonly ParsedYaml[] => {
  const lines = new LineCounter();
  const fault = (error: unknown, offset: number): ConfigError => {
    const { line, col } = lines.linePos(offset);
    return new ConfigError([`${file}:${line}:${col}: no valid YAML: ${firstLine(error)}; correct the file`]);
  };
  let document: Document | undefined;
  try {
    const options = { ...yamlOptions, lineCounter: lines };
    const several = parseAllDocuments(text, options);
    const all = several.length > 0 ? [...several] : [parseDocument(text, options)];
    const parsed = all.map((one) => {
      document = one;
      const [error] = [...one.errors, ...one.warnings];
      if (error !== undefined) throw fault(error, error.pos[0]);
      return { document: one, lines, root: one.toJS() as unknown };
    });
    const saying = parsed.filter(({ root }) => root !== null);
    return saying.length > 0 ? saying : parsed.slice(0, 1);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    // What is nested too deeply, an alias of nothing, or aliases of aliases that would unfold to more than anyone can
    // hold.
    throw fault(error, document === undefined ? 0 : firstAlias(document, (error as Error).message));
  }
};

/** Where the alias stands that `message` names; else the first one. */
const firstAlias = (document: Document, message: string): number => {
  let first: Alias | undefined;
  visit(document, {
    Alias: (_, alias) => {
      first ??= alias;
      if (!message.endsWith(`: ${alias.source}`)) return undefined;
      first = alias;
      return visit.BREAK;
    },
  });
  return first?.range?.[0] ?? 0;
};
