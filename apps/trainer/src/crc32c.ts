/** Castagnoli's polynomial, bits reversed. */
const polynomial = 0x82f63b78;

const table: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ polynomial : remainder >>> 1;
  return remainder;
});

/** CRC-32C of bytes. Source: RFC 3720, appendix B.4. */
export const crc32c = (bytes: Uint8Array): number => {
  let remainder = 0xffffffff;
  for (const byte of bytes) remainder = table[(remainder ^ byte) & 0xff]! ^ (remainder >>> 8);
  return (remainder ^ 0xffffffff) >>> 0;
};

/** CRC-32C as TFRecord files store it: rotated and shifted, so that a checksum of checksums stays sound. Source: TensorFlow, `lib/hash/crc32c.h`. */
export const maskedCrc32c = (bytes: Uint8Array): number => {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
};
