/**
 * Valid range of the first continuation byte, by lead byte, from the Unicode standard. For all other lead bytes the
 * range is 0x80 to 0xbf.
 */
const firstContinuation: Readonly<Record<number, readonly [least: number, greatest: number]>> = {
  0xe0: [0xa0, 0xbf],
  0xed: [0x80, 0x9f],
  0xf0: [0x90, 0xbf],
  0xf4: [0x80, 0x8f],
};

const continuationsOf = (lead: number): number =>
  lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;

/**
 * Returns the index of the first invalid byte of UTF-8 text; for an incomplete or invalid character, the index of the
 * character's lead byte. Undefined if the text is valid.
 *
 * Source: The Unicode Standard, table 3-7, well-formed UTF-8 byte sequences.
 */
export const utf8Fault = (bytes: Uint8Array): number | undefined => {
  for (let index = 0; index < bytes.length; ) {
    const lead = bytes[index]!;
    const count = continuationsOf(lead);
    if (count < 0) return index;
    for (let i = 1; i <= count; i++) {
      const [least, greatest] = (i === 1 && firstContinuation[lead]) || [0x80, 0xbf];
      const byte = bytes[index + i];
      if (byte === undefined || byte < least || byte > greatest) return index;
    }
    index += 1 + count;
  }
  return undefined;
};
