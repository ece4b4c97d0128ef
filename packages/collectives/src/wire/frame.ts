import { ArgumentError } from "@skein/tensor-core";
import { type Checksum, crc32c } from "./crc32c.ts";
import { WireError } from "./errors.ts";
import { protocolVersion } from "./version.ts";

/** Types of frames, with their numbers on the wire (docs/protocol.md). */
export const frameTypes = {
  hello: 1,
  welcome: 2,
  refuse: 3,
  data: 4,
  ping: 5,
  acknowledge: 6,
  bye: 7,
  control: 8,
  error: 9,
  challenge: 10,
  proof: 11,
  join: 12,
} as const;

/** Name of a frame type. */
export type FrameType = keyof typeof frameTypes;

/** Bits of the field `flags` of a frame header. All other bits are zero in this version. */
export const frameFlags = {
  /** The payload is encoded by the lossless codec. */
  coded: 1,
  /** The checksum covers only the header; a lower layer, such as TLS, protects the payload. */
  headerOnly: 2,
  /** The last frame of a message. */
  last: 4,
} as const;

/** Header of each frame between processes; docs/protocol.md has its layout. */
export interface FrameHeader {
  readonly type: FrameType;
  /** Bitwise or of the flags in `frameFlags` that are set. */
  readonly flags: number;
  /** Stream number on the link: the lane of a world. */
  readonly stream: number;
  /**
   * Sequence number of the frame: the number of frames that the sender sent earlier on this link and stream, modulo
   * 2^32.
   */
  readonly sequence: number;
  readonly tag: number;
  /** Size of the payload in bytes. */
  readonly length: number;
}

/** Header of a received frame. */
export interface ReceivedHeader extends FrameHeader {
  readonly checksum: number;
}

/** Size of a frame's header in bytes. */
export const headerBytes = 32;

const magic = 0x314e4b53; // "SKN1"
const checkedBytes = 28;
const knownFlags = 7;
const typeOf: readonly (FrameType | undefined)[] = Array.from(
  { length: Math.max(...Object.values(frameTypes)) + 1 },
  (_, code) => (Object.keys(frameTypes) as FrameType[]).find((type) => frameTypes[type] === code),
);

/**
 * Writes a frame's header, including the checksum. The payload follows the header on the wire, unchanged.
 *
 * 32 bytes, little endian: magic "SKN1", version u8, type u8, flags u16, stream u32, sequence u32, tag u32, length u64,
 * and CRC-32C u32 over the 28 bytes before it and the payload.
 * @param payload payload as one array or several consecutive arrays, `header.length` bytes in total.
 * @param target memory for the header. Default: new memory.
 * @returns the 32 bytes of the header.
 * @throws ArgumentError if a number does not fit its field.
 */
export const encodeHeader = (
  header: FrameHeader,
  payload: Uint8Array | readonly Uint8Array[],
  target: Uint8Array = new Uint8Array(headerBytes),
  checksum: Checksum = crc32c,
): Uint8Array => {
  const pieces = payload instanceof Uint8Array ? [payload] : payload;
  const payloadBytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  if (payloadBytes !== header.length)
    throw new ArgumentError(
      `a frame of ${header.length} bytes got a payload of ${payloadBytes}; pass the length of the payload`,
    );
  for (const field of ["stream", "sequence", "tag"] as const)
    if (header[field] >>> 0 !== header[field])
      throw new ArgumentError(`a frame's ${field} cannot be ${header[field]}; use an integer from 0 to 2^32 − 1`);
  if ((header.flags & knownFlags) !== header.flags)
    throw new ArgumentError(
      `a frame's flags cannot be ${header.flags}; use a sum of ${Object.values(frameFlags).join(", ")}`,
    );
  const view = new DataView(target.buffer, target.byteOffset, headerBytes);
  view.setUint32(0, magic, true);
  view.setUint8(4, protocolVersion.major);
  view.setUint8(5, frameTypes[header.type]);
  view.setUint16(6, header.flags, true);
  view.setUint32(8, header.stream, true);
  view.setUint32(12, header.sequence, true);
  view.setUint32(16, header.tag, true);
  view.setUint32(20, header.length % 2 ** 32, true);
  view.setUint32(24, Math.floor(header.length / 2 ** 32), true);
  let sum = headerChecksum(target);
  if ((header.flags & frameFlags.headerOnly) === 0) for (const piece of pieces) sum = checksum(piece, sum);
  view.setUint32(28, sum, true);
  return target.subarray(0, headerBytes);
};

/**
 * Returns the CRC-32C of the 28 header bytes before the checksum field. The frame's checksum starts with these bytes.
 */
export const headerChecksum = (bytes: Uint8Array, offset = 0): number =>
  crc32c(bytes.subarray(offset, offset + checkedBytes));

/**
 * Reads a header. Its fields are not verified yet, because the checksum also covers the payload.
 *
 * @throws WireError if the magic or version is wrong, the type or a flag is unknown, or the length is larger than any
 * memory.
 */
export const decodeHeader = (bytes: Uint8Array, offset = 0): ReceivedHeader => {
  if (bytes.byteLength - offset < headerBytes)
    throw new WireError(
      "frame-truncated",
      `a frame's header has ${headerBytes} bytes, but only ${bytes.byteLength - offset} are available`,
    );
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, headerBytes);
  const found = view.getUint32(0, true);
  if (found !== magic)
    throw new WireError(
      "not-a-frame",
      `a frame begins with ${hexadecimal(magic)}, but ${hexadecimal(found)} came; the peer is not a rank of Skein, or the stream is damaged`,
    );
  const version = view.getUint8(4);
  if (version !== protocolVersion.major)
    throw new WireError(
      "protocol-version",
      `the peer uses version ${version} of the protocol, this rank version ${protocolVersion.major}; run the same version of Skein on all hosts`,
    );
  const [code, flags] = [view.getUint8(5), view.getUint16(6, true)];
  const type = typeOf[code];
  if (type === undefined)
    throw new WireError(
      "frame-header",
      `a frame has type ${code}, but types are 1 to ${typeOf.length - 1}; the stream is damaged`,
    );
  if ((flags & knownFlags) !== flags)
    throw new WireError(
      "frame-header",
      `a frame has flags ${hexadecimal(flags)}, but only ${hexadecimal(knownFlags)} are known; the stream is damaged`,
    );
  const length = view.getBigUint64(20, true);
  if (length > BigInt(Number.MAX_SAFE_INTEGER))
    throw new WireError(
      "frame-length",
      `a frame announces ${length} bytes, more than any memory has; the stream is damaged, or the peer is hostile`,
    );
  return {
    type,
    flags,
    stream: view.getUint32(8, true),
    sequence: view.getUint32(12, true),
    tag: view.getUint32(16, true),
    length: Number(length),
    checksum: view.getUint32(28, true),
  };
};

const hexadecimal = (value: number): string => `0x${value.toString(16)}`;
