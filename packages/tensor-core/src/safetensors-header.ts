import { SkeinError } from "./errors.ts";
import { excerpt, excerptName } from "./excerpt.ts";

/**
 * Thrown if bytes are not a valid safetensors file. The message states the problem, the rule of the format and a
 * suggested fix. The message length is bounded.
 */
export class SafetensorsError extends SkeinError {
  override name = "SafetensorsError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "safetensors", `safetensors: ${message}`, options);
  }
}

/** Header entry of one tensor, not yet checked against the file. */
export interface DescribedTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Byte offsets `[begin, end]`, relative to the end of the header. */
  readonly dataOffsets: readonly number[];
}

interface ParsedHeader {
  /** Header entries by tensor name, in header order. */
  readonly tensors: ReadonlyMap<string, DescribedTensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Maximum number of header characters that an error message shows, beginning at the position of the error. */
const excerptCharacters = 40;

const [quotation, backslash, zero, nine] = [0x22, 0x5c, 0x30, 0x39];

/** Parser of the header text. Each method consumes the token in its name, or throws. */
class HeaderReader {
  private readonly text: string;
  private position = 0;

  constructor(text: string) {
    this.text = text;
  }

  fault(rule: string): never {
    const found =
      this.position < this.text.length
        ? excerpt(this.text.slice(this.position, this.position + excerptCharacters))
        : "its end";
    throw new SafetensorsError(
      `at character ${this.position} of the header there must be ${rule}, but there is ${found}; the file is damaged or of another format, restore it from another copy`,
    );
  }

  private skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.position);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.position++;
    }
  }

  /** Consumes the next character if it equals `character`. Returns whether a character was consumed. */
  takes(character: string): boolean {
    this.skipSpace();
    if (this.text[this.position] !== character) return false;
    this.position++;
    return true;
  }

  string(what: string): string {
    this.skipSpace();
    if (this.text.charCodeAt(this.position) !== quotation) this.fault(`${what}, a string`);
    const begin = this.position;
    for (let end = this.text.indexOf('"', begin + 1); end >= 0; end = this.text.indexOf('"', end + 1)) {
      let escapes = 0;
      while (this.text.charCodeAt(end - 1 - escapes) === backslash) escapes++;
      if (escapes % 2 === 1) continue; // the quotation mark itself is escaped
      try {
        const value = JSON.parse(this.text.slice(begin, end + 1)) as string;
        this.position = end + 1;
        return value;
      } catch {
        return this.fault(`${what}, a string with escapes as in JSON`);
      }
    }
    return this.fault(`${what}, a string with an end`);
  }

  /** Parses a non-negative integer that a double represents exactly. */
  integer(what: string): number {
    this.skipSpace();
    let value = 0;
    let end = this.position;
    for (; ; end++) {
      const code = this.text.charCodeAt(end);
      if (!(code >= zero && code <= nine)) break;
      value = value * 10 + (code - zero);
      if (value > Number.MAX_SAFE_INTEGER) this.fault(`${what} of at most ${Number.MAX_SAFE_INTEGER}`);
    }
    const leadingZero = end - this.position > 1 && this.text.charCodeAt(this.position) === zero;
    if (end === this.position || leadingZero || ".eE".includes(this.text[end] ?? " "))
      this.fault(`${what}, a whole number from 0`);
    this.position = end;
    return value;
  }

  integers(what: string): number[] {
    if (!this.takes("[")) this.fault(`${what}: [`);
    const values: number[] = [];
    if (this.takes("]")) return values;
    do values.push(this.integer(`a number of ${what}`));
    while (this.takes(","));
    if (!this.takes("]")) this.fault(`, or ] after ${what}`);
    return values;
  }

  /**
   * Parses an object. `member` is called with each key, and must consume the value of the key.
   *
   * @throws SafetensorsError if the syntax is invalid or a key is duplicate.
   */
  object(what: string, member: (key: string) => void): void {
    if (!this.takes("{")) this.fault(`${what}: {`);
    if (this.takes("}")) return;
    const keys = new Set<string>();
    do {
      const key = this.string(`a key of ${what}`);
      if (keys.has(key))
        throw new SafetensorsError(`${what} has the key ${excerpt(key)} twice; the file is damaged, write it again`);
      keys.add(key);
      if (!this.takes(":")) this.fault(`: after the key ${excerpt(key)}`);
      member(key);
    } while (this.takes(","));
    if (!this.takes("}")) this.fault(`, or } after a member of ${what}`);
  }

  /** Throws if anything except white space remains. */
  end(): void {
    this.skipSpace();
    if (this.position < this.text.length) this.fault("spaces only, after the header's }");
  }
}

const readTensor = (reader: HeaderReader, name: string): DescribedTensor => {
  const what = `tensor ${excerptName(name)}`;
  const fields: { dtype?: string; shape?: number[]; dataOffsets?: number[] } = {};
  reader.object(what, (key) => {
    if (key === "dtype") fields.dtype = reader.string(`the dtype of ${what}`);
    else if (key === "shape") fields.shape = reader.integers(`the shape of ${what}`);
    else if (key === "data_offsets") fields.dataOffsets = reader.integers(`the data_offsets of ${what}`);
    else
      throw new SafetensorsError(
        `${what} has the key ${excerpt(key)}; the format allows only dtype, shape and data_offsets, write the file again`,
      );
  });
  const { dtype, shape, dataOffsets } = fields;
  if (dtype === undefined || shape === undefined || dataOffsets === undefined) {
    const missing = dtype === undefined ? "dtype" : shape === undefined ? "shape" : "data_offsets";
    throw new SafetensorsError(
      `${what} has no ${missing}; dtype, shape and data_offsets are all needed, the file is damaged`,
    );
  }
  return { dtype, shape, dataOffsets };
};

/**
 * Parses the JSON of a header. Accepts only the fixed structure of a safetensors header, so the depth is bounded.
 * Detects duplicate keys, and stops at the first error.
 *
 * Cost: one pass over the text; memory proportional to its length.
 * @throws SafetensorsError if the header does not have this structure.
 */
export const parseHeader = (bytes: Uint8Array): ParsedHeader => {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new SafetensorsError(
      "the header is not UTF-8; the file is damaged or of another format, restore it from another copy",
      { cause },
    );
  }
  const reader = new HeaderReader(text);
  const tensors = new Map<string, DescribedTensor>();
  const metadata = new Map<string, string>();
  reader.object("the header", (name) => {
    if (name === "__metadata__")
      reader.object("__metadata__", (key) =>
        metadata.set(key, reader.string(`the value of ${excerpt(key)} in __metadata__`)),
      );
    else tensors.set(name, readTensor(reader, name));
  });
  reader.end();
  return { tensors, metadata: Object.fromEntries(metadata) };
};
