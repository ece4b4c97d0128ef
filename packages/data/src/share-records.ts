import type { Field, Records } from "./records.ts";

/**
 * Copies samples into shared memory, so that all threads share one copy. Fields that share a buffer, such as windows of
 * a text and their targets, still share a buffer afterwards. Shared memory is not copied again.
 *
 * @example
 * ```ts
 * const records = shareRecords(arrayRecords({ inputs: NdArray.from([1, 2], [2, 1]) }));
 * console.log(records.fields["inputs"]!.bytes.buffer instanceof SharedArrayBuffer); // true
 * ```
 */
export const shareRecords = (records: Records): Records => {
  const shared = new Map<ArrayBufferLike, SharedArrayBuffer>();
  const shareOf = (buffer: ArrayBufferLike): SharedArrayBuffer => {
    if (buffer instanceof SharedArrayBuffer) return buffer;
    let copy = shared.get(buffer);
    if (copy === undefined) {
      copy = new SharedArrayBuffer(buffer.byteLength);
      new Uint8Array(copy).set(new Uint8Array(buffer));
      shared.set(buffer, copy);
    }
    return copy;
  };
  const fields = Object.entries(records.fields).map(([name, field]): [string, Field] => {
    const { buffer, byteOffset, length } = field.bytes;
    return [name, { ...field, bytes: new Uint8Array(shareOf(buffer), byteOffset, length) }];
  });
  return { count: records.count, fields: Object.fromEntries(fields) };
};
