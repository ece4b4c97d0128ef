/** Maximum length of a line of metrics, in bytes. */
const maxLineBytes = 2 ** 20;

const newline = 0x0a;

/** Assembles lines from consecutive chunks of a file. A chunk may end anywhere, also within a character. */
export class LineSplitter {
  private readonly line: (text: string) => void;
  private readonly tooLong: () => void;
  private rest: Buffer[] = [];
  private restBytes = 0;
  private skipping = false;

  constructor(line: (text: string) => void, tooLong: () => void) {
    this.line = line;
    this.tooLong = tooLong;
  }

  take(piece: Buffer): void {
    let from = 0;
    for (let end = piece.indexOf(newline); end >= 0; end = piece.indexOf(newline, from)) {
      this.finish(piece.subarray(from, end));
      from = end + 1;
    }
    this.keep(piece.subarray(from));
  }

  private finish(end: Buffer): void {
    if (!this.skipping) {
      if (this.restBytes + end.length > maxLineBytes) this.tooLong();
      else this.line((this.rest.length === 0 ? end : Buffer.concat([...this.rest, end])).toString("utf8"));
    }
    this.rest = [];
    this.restBytes = 0;
    this.skipping = false;
  }

  private keep(part: Buffer): void {
    if (part.length === 0 || this.skipping) return;
    if (this.restBytes + part.length > maxLineBytes) {
      this.tooLong();
      this.rest = [];
      this.restBytes = 0;
      this.skipping = true;
      return;
    }
    this.rest.push(Buffer.from(part)); // copied, because the buffer of the piece is reused
    this.restBytes += part.length;
  }
}
