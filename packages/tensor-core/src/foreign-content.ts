/** Kind of content that a file reader expects. */
export type FileContent =
  | "text"
  | "html"
  | "json"
  | "csv"
  | "image"
  | "npy"
  | "npz"
  | "parquet"
  | "safetensors"
  | "tar"
  | "gzip"
  | "idx"
  | "tokens";

interface Content {
  /** Noun phrase for the content in messages. */
  readonly noun: string;
  /** File formats that the reader accepts. */
  readonly takes?: readonly Format[];
  /** Whether the file is text: UTF-8 without zero bytes. */
  readonly isText?: boolean;
  /** Whether a valid file may begin with any bytes. Short signatures of other formats are then ignored. */
  readonly isRaw?: boolean;
}

type Format = keyof typeof formats;

const contents: Readonly<Record<FileContent, Content>> = {
  text: { noun: "text", isText: true },
  html: { noun: "HTML", isText: true, takes: ["html"] },
  json: { noun: "JSON", isText: true },
  csv: { noun: "CSV", isText: true },
  image: { noun: "an image" },
  npy: { noun: "an array of NumPy (.npy)", takes: ["npy"] },
  npz: { noun: "an .npz archive", takes: ["zip"] },
  parquet: { noun: "a Parquet file", takes: ["parquet"] },
  safetensors: { noun: "a safetensors file", takes: ["safetensors"] },
  tar: { noun: "a tar file", takes: ["tar"] },
  gzip: { noun: "a file compressed by gzip", takes: ["gzip"] },
  idx: { noun: "an IDX file", takes: ["gzip"] },
  tokens: { noun: "a file of plain tokens", isRaw: true, takes: ["npy"] },
};

/** File format that is recognized by its first bytes. */
interface Signature {
  /** Noun phrase for a file of this format in messages. */
  readonly noun: string;
  readonly cure: string;
  /** Replacement for the noun of the expected content in messages. Default: `noun` of the expected `Content`. */
  readonly instead?: string;
  matches(head: Uint8Array): boolean;
  /** Whether the signature is so short that a file of raw numbers may begin with the same bytes by chance. */
  readonly isShort?: boolean;
}

/** Number of leading bytes of a file that `foreignContent` examines. */
export const headBytes = 512;

const beginsWith = (head: Uint8Array, bytes: string, at = 0): boolean => {
  for (let i = 0; i < bytes.length; i++) if (head[at + i] !== bytes.charCodeAt(i)) return false;
  return true;
};

/** Converts bytes to text, one character per byte. */
const textOf = (head: Uint8Array): string => String.fromCharCode(...head);

const unpack = (program: string): string => `unpack it, for example with ${program}`;

/**
 * Whether a file is gzip. Also checks the flags, the extra flags (compression level) and the operating system against
 * RFC 1952.
 */
const isGzip = (head: Uint8Array): boolean =>
  beginsWith(head, "\x1f\x8b\x08") &&
  head.length >= 10 &&
  (head[3]! & 0xe0) === 0 &&
  [0, 2, 4].includes(head[8]!) &&
  (head[9]! <= 13 || head[9] === 255);

const isZip = (head: Uint8Array): boolean =>
  beginsWith(head, "PK\x05\x06\0\0") || (beginsWith(head, "PK\x03\x04") && head[4]! < 64 && head[5] === 0);

const isSafetensors = (head: Uint8Array): boolean =>
  head.length >= 10 && beginsWith(head, "\0\0\0\0", 4) && head[8] === 0x7b && (head[9] === 0x22 || head[9] === 0x7d);

/**
 * Whether a file is a Python pickle with a long signature: protocols 4 and 5 begin with a frame and its eight-byte
 * length, and files of older PyTorch versions begin with a magic number.
 */
const isLongPickle = (head: Uint8Array): boolean =>
  beginsWith(head, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20") ||
  (head[0] === 0x80 && (head[1] === 4 || head[1] === 5) && head[2] === 0x95 && beginsWith(head, "\0\0\0", 8));

const pickle = "a Python pickle, which runs code when it is read";
const pickleCure = "save it again in a format without code";

const formats = {
  lfs: {
    noun: "a pointer of Git LFS",
    instead: "the file",
    cure: "run git lfs pull",
    matches: (head) => /^version https:\/\/(git-lfs\.github|hawser\.github)\.com\/spec\//.test(textOf(head)),
  },
  annex: {
    noun: "a pointer of git-annex",
    instead: "the file",
    cure: "run git annex get",
    matches: (head) => /^(\/|(\.\.\/)*\.git\/)annex\/objects\//.test(textOf(head)),
  },
  html: {
    noun: "an HTML page",
    cure: "see what the server says in it, and download the file again",
    matches: (head) =>
      /^(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?<(!doctype\s+html|html[\s>])/is.test(textOf(head)),
  },
  gzip: { noun: "compressed by gzip", cure: unpack("gunzip"), matches: isGzip },
  zstd: {
    noun: "compressed by Zstandard",
    cure: unpack("unzstd"),
    matches: (head) => beginsWith(head, "\x28\xb5\x2f\xfd"),
  },
  xz: { noun: "compressed by xz", cure: unpack("unxz"), matches: (head) => beginsWith(head, "\xfd7zXZ\0") },
  bzip2: {
    noun: "compressed by bzip2",
    cure: unpack("bunzip2"),
    matches: (head) => beginsWith(head, "BZh") && beginsWith(head, "1AY&SY", 4),
  },
  zip: { noun: "a zip archive, as .npz and PyTorch's files are", cure: unpack("unzip"), matches: isZip },
  longPickle: { noun: pickle, cure: pickleCure, matches: isLongPickle },
  pickle: {
    noun: pickle,
    cure: pickleCure,
    matches: (head) => head[0] === 0x80 && head[1]! >= 2 && head[1]! <= 5,
    isShort: true,
  },
  npy: {
    noun: "an array of NumPy (.npy)",
    cure: "use a reader of arrays, such as data: {kind: numpy} or {kind: tokens}",
    matches: (head) => beginsWith(head, "\x93NUMPY"),
  },
  parquet: {
    noun: "a Parquet file",
    cure: "use a reader of Parquet, such as data: {kind: text, file: texts.parquet}",
    matches: (head) => beginsWith(head, "PAR1") || beginsWith(head, "PARE"),
  },
  arrow: {
    noun: "a file of Arrow",
    cure: "write it again as Parquet",
    matches: (head) => beginsWith(head, "ARROW1\0\0"),
  },
  gguf: {
    noun: "a GGUF file, of llama.cpp",
    cure: "name the files that it was converted from",
    matches: (head) => beginsWith(head, "GGUF") && head[4]! < 16 && beginsWith(head, "\0\0\0", 5),
  },
  safetensors: { noun: "a safetensors file", cure: "name another file", matches: isSafetensors },
  hdf5: {
    noun: "an HDF5 file",
    cure: "write what it holds in another format",
    matches: (head) => beginsWith(head, "\x89HDF\r\n\x1a\n"),
  },
  sqlite: {
    noun: "a database of SQLite",
    cure: "write what it holds in another format",
    matches: (head) => beginsWith(head, "SQLite format 3\0"),
  },
  pdf: { noun: "a PDF", cure: "extract its text first", matches: (head) => beginsWith(head, "%PDF-") },
  tar: { noun: "a tar file", cure: unpack("tar -xf"), matches: (head) => beginsWith(head, "ustar", 257) },
  utf16: {
    noun: "encoded in UTF-16 or UTF-32",
    instead: "in UTF-8",
    cure: "write it again, for example with iconv -t UTF-8",
    matches: (head) => beginsWith(head, "\xff\xfe") || beginsWith(head, "\xfe\xff") || isWide(head),
    isShort: true,
  },
} as const satisfies Readonly<Record<string, Signature>>;

/** Whether bytes are ASCII text in UTF-16 without a byte order mark: each second byte is 0. */
const isWide = (head: Uint8Array): boolean => {
  if (head.length < 4) return false;
  const even = head.subarray(0, head.length & ~1);
  const zeros = [0, 0];
  for (let i = 0; i < even.length; i++) if (even[i] === 0) zeros[i % 2]!++;
  return zeros.includes(0) && zeros.includes(even.length / 2);
};

/**
 * Minimum number of examined bytes that identify a file as text if all of them are ASCII. Files of raw numbers almost
 * never begin with that many ASCII bytes.
 */
const enoughCharacters = 64;
/** Whether a byte is a printable ASCII character or white space. */
const isAscii = (byte: number): boolean => (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d);

/**
 * Detects from the first bytes of a file that the file does not have the expected content.
 *
 * @param head First `headBytes` bytes of the file, or the whole file if the file is shorter.
 * @returns A description of the actual content, with a suggested fix. The text completes a sentence that begins with
 * the file name. Undefined if the file may have the expected content.
 */
export const foreignContent = (head: Uint8Array, holds: FileContent): string | undefined => {
  const { noun, takes = [], isText = false, isRaw = false }: Content = contents[holds];
  const bytes = head.subarray(0, headBytes);
  // Raw numbers at the beginning of a valid file may match a short signature.
  if (takes.some((format) => formats[format].matches(bytes))) return undefined;
  for (const { noun: found, cure, instead = noun, matches, isShort = false } of Object.values<Signature>(formats)) {
    if ((isShort && isRaw) || !matches(bytes)) continue;
    return `is ${found}, not ${instead}: ${cure}`;
  }
  if (isRaw && bytes.length >= enoughCharacters && bytes.every(isAscii))
    return `is text, not ${noun}: use data: {kind: text}, or make tokens of the text first`;
  const zero = isText ? bytes.indexOf(0) : -1;
  return zero < 0 ? undefined : `is not ${noun}: byte ${zero} is 0; name a file of ${noun}, in UTF-8`;
};
