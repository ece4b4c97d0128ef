import { ConfigError } from "./errors.ts";
import { type Alias, type Document, LineCounter, parseAllDocuments, parseDocument, visit } from "yaml";

/**
 * Maximum length of a YAML job in characters. Typical jobs have a few hundred characters. Parsing time grows with the
 * square of the number of keys of a mapping. Longer jobs must be JSON, the format in which runs save jobs.
 */
export const maxYamlLength: number = 32 * 1024;

/**
 * Options of the YAML parser. Unknown tags are errors. Dates, sets and merge keys of YAML 1.1 are not supported, even
 * if a file requests that version.
 */
export const yamlOptions = { schema: "core", prettyErrors: false, logLevel: "error" } as const;

/** Returns the first line of a parser error, with characters that are safe to print. */
export const firstLine = (error: unknown): string =>
  /call stack/.test((error as Error).message)
    ? "its values are nested too deeply"
    : (error as Error).message.split("\n")[0]!.replaceAll(/\p{C}/gu, "?").slice(0, 120);

/** A parsed YAML document. */
export interface ParsedYaml {
  readonly document: Document;
  readonly lines: LineCounter;
  readonly root: unknown;
}

/**
 * Parses the documents of a YAML text. If there are several documents, empty documents are omitted.
 *
 * @throws ConfigError with the location of the first error, if the YAML is invalid.
 */
export const parseYaml = (text: string, file: string): readonly ParsedYaml[] => {
  const lines = new LineCounter();
  const fault = (error: unknown, offset: number): ConfigError => {
    const { line, col } = lines.linePos(offset);
    return new ConfigError([`${file}:${line}:${col}: invalid YAML: ${firstLine(error)}; correct the file`]);
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
    const nonEmpty = parsed.filter(({ root }) => root !== null);
    return nonEmpty.length > 0 ? nonEmpty : parsed.slice(0, 1);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    // Causes: values nested too deeply, an unresolved alias, or nested aliases that would expand beyond memory.
    throw fault(error, document === undefined ? 0 : firstAlias(document, (error as Error).message));
  }
};

/**
 * Returns the text offset of the YAML alias that a parser's `message` names. If the message names no alias, returns the
 * offset of the first alias in the document.
 */
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
