/** Fields of a JPEG header. */
export interface JpegHeader {
  readonly rows: number;
  readonly columns: number;
  /** Number of color components. 1: gray, 3: color, 4: CMYK. */
  readonly components: number;
  /** Number of bits per component. */
  readonly precision: number;
  /** Start-of-frame marker, 0xc0 to 0xcf, which identifies the coding process. */
  readonly frame: number;
  /** EXIF orientation, 1 (upright) to 8. */
  readonly orientation: number;
}

const marker = { image: 0xd8, scan: 0xda, end: 0xd9, app1: 0xe1 } as const;

/** Whether a marker starts a frame: 0xc0 to 0xcf, except DHT, JPG and DAC. */
const isFrame = (kind: number): boolean => kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind);

/** Whether a marker consists of two bytes only, without length and data. */
const isAlone = (kind: number): boolean => kind === 0x01 || (kind >= 0xd0 && kind <= marker.image);

const startsWith = (bytes: Uint8Array, text: string): boolean =>
  Array.from(text).every((character, i) => bytes[i] === character.charCodeAt(0));

const orientationTag = 0x0112;
const shortType = 3;

/**
 * Returns the orientation stored in an EXIF segment; 1 if absent or invalid. Returns undefined if the segment is
 * malformed.
 */
const orientationIn = (segment: Uint8Array): number | undefined => {
  const tiff = segment.subarray(6); // after "Exif" and two zero bytes
  const view = new DataView(tiff.buffer, tiff.byteOffset, tiff.byteLength);
  const isLittle = startsWith(tiff, "II*\0");
  if (!isLittle && !startsWith(tiff, "MM\0*")) return undefined;
  if (tiff.length < 10) return undefined;
  const folder = view.getUint32(4, isLittle);
  if (folder + 2 > tiff.length) return undefined;
  const count = view.getUint16(folder, isLittle);
  for (let i = 0, at = folder + 2; i < count; i++, at += 12) {
    if (at + 12 > tiff.length) return undefined;
    if (view.getUint16(at, isLittle) !== orientationTag) continue;
    if (view.getUint16(at + 2, isLittle) !== shortType) return undefined;
    const value = view.getUint16(at + 8, isLittle);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
};

/**
 * Reads the header of a JPEG (ITU T.81, annex B), including EXIF.
 *
 * @returns undefined if the bytes are not a JPEG, or are damaged before the pixel data.
 */
export const jpegHeader = (bytes: Uint8Array): JpegHeader | undefined => {
  if (bytes[0] !== 0xff || bytes[1] !== marker.image) return undefined;
  let frame: Omit<JpegHeader, "orientation"> | undefined;
  let orientation: number | undefined;
  for (let at = 2; at + 4 <= bytes.length; ) {
    if (bytes[at] !== 0xff) return undefined;
    const kind = bytes[at + 1]!;
    if (kind === 0xff) {
      at++; // fill byte
      continue;
    }
    if (isAlone(kind)) {
      at += 2;
      continue;
    }
    const length = bytes[at + 2]! * 256 + bytes[at + 3]!;
    if (kind === marker.end || length < 2 || at + 2 + length > bytes.length) return undefined;
    const segment = bytes.subarray(at + 4, at + 2 + length);
    if (kind === marker.scan) return frame && { ...frame, orientation: orientation ?? 1 };
    if (isFrame(kind)) {
      if (segment.length < 6 || frame !== undefined) return undefined;
      const [precision, highRows, lowRows, highColumns, lowColumns, components] = segment as unknown as number[];
      frame = {
        rows: highRows! * 256 + lowRows!,
        columns: highColumns! * 256 + lowColumns!,
        components: components!,
        precision: precision!,
        frame: kind,
      };
    } else if (kind === marker.app1 && startsWith(segment, "Exif\0\0") && orientation === undefined) {
      orientation = orientationIn(segment);
      if (orientation === undefined) return undefined;
    }
    at += 2 + length;
  }
  return undefined;
};
