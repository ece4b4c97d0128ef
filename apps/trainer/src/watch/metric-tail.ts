import { type FileHandle, open } from "node:fs/promises";
import { LineSplitter } from "./line-splitter.ts";
import { MetricTable } from "./metric-table.ts";

const pieceBytes = 2 ** 20;
/** So many bytes before the place that was read up to, by which a file that was written anew is known. */
const markBytes = 256;

/**
 * Follows a file of metrics that another process appends to: reads what is new, and all of it again where the file was
 * replaced, cut or written anew, as by a resume.
 */
export class MetricTail {
  table: MetricTable = new MetricTable();
  /** Bytes read. */
  offset = 0;
  /** When the file was last written, milliseconds since 1970; 0 before it was seen. */
  writtenAt = 0;
  private readonly path: string;
  private splitter: LineSplitter = this.makeSplitter();
  private inode = -1;
  private mark: Buffer = Buffer.alloc(0);
  private generations = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Of the points that are known: grows when some that were told are no longer true. */
  get generation(): number {
    return this.generations + this.table.generation;
  }

  /**
   * Read what is new.
   *
   * @returns whether anything was.
   * @throws the system's error, ENOENT too: then the run has been deleted.
   */
  async read(): Promise<boolean> {
    const file = await open(this.path, "r");
    try {
      const { size, ino, mtimeMs } = await file.stat();
      const isAnew = this.offset > 0 && (ino !== this.inode || !(await this.isContinued(file)));
      if (isAnew) this.startAnew();
      this.inode = ino;
      this.writtenAt = mtimeMs;
      if (size <= this.offset) return isAnew;
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - this.offset));
      while (this.offset < size) {
        const { bytesRead } = await file.read(piece, 0, Math.min(piece.length, size - this.offset), this.offset);
        if (bytesRead === 0) break; // it was cut meanwhile: the next look sees it
        const part = piece.subarray(0, bytesRead);
        this.splitter.take(part);
        this.offset += bytesRead;
        this.mark = Buffer.concat([this.mark, part.subarray(-markBytes)]).subarray(-markBytes);
      }
      return true;
    } finally {
      await file.close();
    }
  }

  /** Whether what was read last still stands where it stood; in a file that was cut before that, it does not. */
  private async isContinued(file: FileHandle): Promise<boolean> {
    const before = Buffer.alloc(this.mark.length);
    const { bytesRead } = await file.read(before, 0, before.length, this.offset - before.length);
    return bytesRead === before.length && before.equals(this.mark);
  }

  private startAnew(): void {
    this.generations += this.table.generation + 1;
    this.table = new MetricTable();
    this.splitter = this.makeSplitter();
    this.offset = 0;
    this.mark = Buffer.alloc(0);
  }

  private makeSplitter(): LineSplitter {
    return new LineSplitter(
      (text) => this.table.takeLine(text),
      () => this.table.skipLine(),
    );
  }
}
