import { CodedPayloadError } from "./errors.ts";

/** Dtypes whose exponents can be coded. */
export type CodedDType = "bf16" | "f32";

/** Coding parameters of a dtype. */
export interface Coding {
  /** Number that identifies the dtype in the header of a coded payload. */
  readonly number: number;
  readonly bytesPerElement: number;
  /** Number of uncoded bytes per element: sign and mantissa. */
  readonly rawBytesPerElement: number;
}

export const codings: { readonly [dtype in CodedDType]: Coding } = {
  bf16: { number: 1, bytesPerElement: 2, rawBytesPerElement: 1 },
  f32: { number: 2, bytesPerElement: 4, rawBytesPerElement: 3 },
};

/** Header of a coded payload. */
export interface CodedHeader {
  readonly dtype: CodedDType;
  /** Lowest of the seven exponents in the window. */
  readonly first: number;
  readonly count: number;
  readonly numEscapes: number;
}

export const codedHeaderBytes = 16;
const lastFirst = 249; // The seven exponents from 249 on end at 255.

/**
 * Returns the size of coded elements in bytes: header, raw sign and mantissa, codes of three bits, and one byte for
 * each exponent outside the window.
 */
export const codedBytes = ({ dtype, count, numEscapes }: Pick<CodedHeader, "dtype" | "count" | "numEscapes">): number =>
  codedHeaderBytes + count * codings[dtype].rawBytesPerElement + 3 * Math.ceil(count / 8) + numEscapes;

/** Writes the header at the beginning of `target`. */
export const writeCodedHeader = (target: Uint8Array, { dtype, first, count, numEscapes }: CodedHeader): void => {
  const view = new DataView(target.buffer, target.byteOffset, codedHeaderBytes);
  view.setUint8(0, codings[dtype].number);
  view.setUint8(1, first);
  view.setUint16(2, 0, true);
  view.setUint32(4, count, true);
  view.setUint32(8, numEscapes, true);
  view.setUint32(12, 0, true);
};

/**
 * Reads the header of a payload that decodes to `targetBytes`.
 *
 * @throws CodedPayloadError unless all fields match the lengths of the payload and of the target.
 */
export const readCodedHeader = (coded: Uint8Array, targetBytes: number): CodedHeader => {
  if (coded.byteLength < codedHeaderBytes)
    throw new CodedPayloadError(`it has ${coded.byteLength} bytes, fewer than its header of ${codedHeaderBytes}`);
  const view = new DataView(coded.buffer, coded.byteOffset, codedHeaderBytes);
  const [number, first] = [view.getUint8(0), view.getUint8(1)];
  const dtype = (Object.keys(codings) as CodedDType[]).find((each) => codings[each].number === number);
  if (dtype === undefined) throw new CodedPayloadError(`it is of type ${number}, but the types are 1 and 2`);
  if (first > lastFirst)
    throw new CodedPayloadError(`its window begins at exponent ${first}, but the last one begins at ${lastFirst}`);
  if (view.getUint16(2, true) !== 0 || view.getUint32(12, true) !== 0)
    throw new CodedPayloadError("bytes of its header that must be 0 are not");
  const header = { dtype, first, count: view.getUint32(4, true), numEscapes: view.getUint32(8, true) };
  if (header.count * codings[dtype].bytesPerElement !== targetBytes)
    throw new CodedPayloadError(`it has ${header.count} elements of ${dtype}, but ${targetBytes} bytes are expected`);
  const expected = codedBytes(header);
  if (coded.byteLength !== expected)
    throw new CodedPayloadError(`it has ${coded.byteLength} bytes, but its header implies ${expected}`);
  return header;
};
