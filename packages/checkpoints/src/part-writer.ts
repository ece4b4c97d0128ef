import { type MessagePort, MessageChannel, receiveMessageOnPort, type Worker } from "node:worker_threads";
import { startThread } from "@skein/collectives/node";
import type { SavedFile } from "./checkpoint-part.ts";

/**
 * Files that one rank writes for one checkpoint. The content of each file is a list of byte arrays, whose memory is
 * transferred to the writer thread.
 */
export interface PartsToWrite {
  readonly output: string;
  readonly step: number;
  readonly parts: readonly { readonly name: string; readonly content: readonly Uint8Array<ArrayBuffer>[] }[];
}

/** Response of the writer thread: the written files, or an error. */
export type WriteAnswer =
  | { readonly files: readonly SavedFile[] }
  | { readonly message: string; readonly code: string | undefined; readonly stack: string };

/** Writes a rank's checkpoint files in a separate thread during the following steps, one checkpoint at a time. */
export class PartWriter {
  private readonly written: (step: number, files: readonly SavedFile[]) => void;
  private thread: { readonly worker: Worker; readonly port: MessagePort } | undefined;
  private stepInProgress: number | undefined;
  private waiting: (() => void) | undefined;
  private failure: Error | undefined;

  /**
   * Creates a writer.
   * @param written called for each checkpoint when all files of this rank are on disk.
   */
  constructor(written: (step: number, files: readonly SavedFile[]) => void) {
    this.written = written;
  }

  /**
   * Starts writing a checkpoint. Call `idle` first: a queued checkpoint would need as much memory as the training
   * state.
   */
  begin(parts: PartsToWrite): void {
    if (parts.parts.length === 0) return this.written(parts.step, []);
    this.thread ??= this.open();
    this.stepInProgress = parts.step;
    const memory = parts.parts.flatMap(({ content }) => content.map(({ buffer }) => buffer));
    this.thread.port.postMessage(parts, memory);
  }

  /**
   * Checks for a response of the writer thread without waiting. Needed because a thread that computes without pause
   * receives no message events.
   *
   * @throws the error of the write.
   */
  look(): void {
    const next = this.thread && receiveMessageOnPort(this.thread.port);
    if (next !== undefined) this.take(next.message as WriteAnswer);
    if (this.failure !== undefined) throw this.failure;
  }

  /** Waits until the current checkpoint is written. @throws the error of the write. */
  async idle(): Promise<void> {
    this.look();
    if (this.stepInProgress !== undefined)
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
    this.look();
  }

  /** Stops the writer thread. A write in progress stays unfinished. */
  close(): void {
    this.thread?.port.close();
    void this.thread?.worker.terminate();
  }

  private open(): { readonly worker: Worker; readonly port: MessagePort } {
    const { port1: port, port2 } = new MessageChannel();
    const options = {
      workerData: port2,
      transferList: [port2],
      name: "skein-checkpoint",
      resourceLimits: { maxYoungGenerationSizeMb: 2 },
    };
    const worker = startThread(() => new URL("./part-writer-thread.ts", import.meta.url), options, "skein-train");
    port.on("message", (message: WriteAnswer) => this.take(message));
    worker.once("error", ({ message, stack = message }: Error) => this.take({ message, code: undefined, stack }));
    return { worker, port };
  }

  private take(written: WriteAnswer): void {
    const step = this.stepInProgress!;
    this.stepInProgress = undefined;
    if ("files" in written) this.written(step, written.files);
    else {
      const { message, code, stack } = written;
      this.failure = Object.assign(new Error(message), { stack, ...(code !== undefined && { code }) });
    }
    this.waiting?.();
    this.waiting = undefined;
  }
}
