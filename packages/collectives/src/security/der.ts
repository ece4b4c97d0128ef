/** A DER element: its tag, its contents, and the bytes of the complete element. */
interface DerElement {
  readonly tag: number;
  readonly contents: Uint8Array;
  readonly whole: Uint8Array;
}

/** Tags of the ASN.1 types used in this package. */
export const derTags = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  /** Returns the context-specific tag `[number]`. */
  context: (number: number): number => 0xa0 + number,
} as const;

/**
 * Reads consecutive elements of DER (X.690). DER has exactly one valid encoding per value; other encodings are refused.
 */
export class DerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Tag of the next element; undefined at the end. */
  get tag(): number | undefined {
    return this.#bytes[this.#at];
  }

  /**
   * Reads the next element.
   *
   * @throws Error if the next element is missing, truncated, or has another tag.
   */
  next(...tags: readonly number[]): DerElement {
    const bytes = this.#bytes;
    const begin = this.#at;
    const tag = bytes[begin];
    const first = bytes[begin + 1];
    if (tag === undefined || first === undefined) throw new Error("it ends too early");
    if (tags.length > 0 && !tags.includes(tag))
      throw new Error(`byte ${begin} begins an element of type ${tag} instead of ${tags[0]}`);
    let length = first;
    let body = begin + 2;
    if (first > 0x80) {
      const count = first - 0x80;
      if (count > 4 || bytes[body] === undefined || bytes[body] === 0)
        throw new Error("a length is not encoded as DER requires");
      length = 0;
      for (const end = body + count; body < end; body++) length = length * 256 + (bytes[body] ?? 0);
      if (length < 0x80) throw new Error("a length is not encoded as DER requires");
    } else if (first === 0x80) throw new Error("an element has no length");
    if (body + length > bytes.length) throw new Error("it ends too early");
    this.#at = body + length;
    return { tag, contents: bytes.subarray(body, body + length), whole: bytes.subarray(begin, body + length) };
  }

  /** Returns a reader for the contents of the next element. */
  enter(...tags: readonly number[]): DerReader {
    return new DerReader(this.next(...tags).contents);
  }
}
