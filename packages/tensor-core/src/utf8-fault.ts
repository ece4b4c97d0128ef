/** Sizes of the first continuation byte that Unicode allows behind some lead bytes; others take 0x80 to 0xbf. */
const firstContinuation: Readonly<Record<number, readonly [least: number, greatest: number]>> = {
  0xe0: [0xa0, 0xbf],
  0xed: [0x80, 0x9f],
  0xf0: [0x90, 0xbf],
  0xf4: [0x80, 0x8f],
};

const continuationsOf = (lead: number): number =>
  lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf5 ? 3 : -1;

/**
 * Index of the first byte that is not UTF-8: of the lead byte, if the character that it begins is damaged. Undefined
 * if all bytes are UTF-8.
 *
 * Source: The Unicode Standard, table 3-7, well-formed UTF-8 byte sequences.
 */
export const utf8Fault = (bytes: Uint8Array): number | undefined => {
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at]!;
    const count = continuationsOf(lead);
    if (count < 0) return at;
    for (let i = 1; i <= count; i++) {
      const [least, greatest] = (i === 1 && firstContinuation[lead]) || [0x80, 0xbf];
      const byte = bytes[at + i];
      if (byte === undefined || byte < least || byte > greatest) return at;
    }
    at += 1 + count;
  }
  return undefined;
};
