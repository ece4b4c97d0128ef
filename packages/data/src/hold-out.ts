import { DataError } from "./errors.ts";
import { epochOrder } from "./order.ts";
import { type Field, type Records, sampleBytes } from "./records.ts";

/** The same samples in another order, or some of them, in shared memory of their own. */
const chosen = (records: Records, indices: Int32Array): Records => {
  const fields = Object.entries(records.fields).map(([name, field]): [string, Field] => {
    const each = sampleBytes(field);
    const bytes = new Uint8Array(new SharedArrayBuffer(indices.length * each));
    for (const [to, index] of indices.entries()) {
      const from = field.offsetBytes + index * field.strideBytes;
      bytes.set(field.bytes.subarray(from, from + each), to * each);
    }
    return [name, { ...field, bytes, offsetBytes: 0, strideBytes: each }];
  });
  return { count: indices.length, fields: Object.fromEntries(fields) };
};

/**
 * Draw samples to judge by, for data whose samples lie in an order of their own, such as one class after the other.
 * Both parts are mixed; the draw depends on the number of samples alone.
 *
 * @param fraction in (0, 1) to judge by, rounded down but one at least. @param name what errors call the data.
 * @throws DataError when fewer than two samples leave one part empty.
 */
export const holdOut = (
  records: Records,
  fraction: number,
  name: string,
): { readonly train: Records; readonly test: Records } => {
  if (records.count < 2)
    throw new DataError(`${name} holds ${records.count} samples to learn from and to judge by; give two at least`);
  const order = epochOrder(0, 0, records.count);
  const cut = records.count - Math.max(1, Math.floor(records.count * fraction));
  return { train: chosen(records, order.subarray(0, cut)), test: chosen(records, order.subarray(cut)) };
};
