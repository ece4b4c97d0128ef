import { type MessagePort, MessageChannel, receiveMessageOnPort, type Worker } from "node:worker_threads";
import { startThread } from "@skein/collectives/node";
import type { SavedFile } from "./checkpoint-part.ts";

/** Files of one rank for one checkpoint, by name, each piece by piece. Given away: the writer takes the memory over. */
export interface PartsToWrite {
  readonly output: string;
  readonly step: number;
  readonly parts: readonly { readonly name: string; readonly content: readonly Uint8Array<ArrayBuffer>[] }[];
}

/** What the thread says of them. */
export type Written =
  | { readonly files: readonly SavedFile[] }
  | { readonly message: string; readonly code: string | undefined; readonly stack: string };

/**
 * Writes a rank's parts of checkpoints in a thread of its own, beside the steps that follow. One checkpoint at a time.
 */
export class PartWriter {
  private readonly written: (step: number, files: readonly SavedFile[]) => void;
  private thread: { readonly worker: Worker; readonly port: MessagePort } | undefined;
  private underWay: number | undefined;
  private waiting: (() => void) | undefined;
  private failure: Error | undefined;

  /** @param written is told each checkpoint of which all parts of this rank are on the disk. */
  constructor(written: (step: number, files: readonly SavedFile[]) => void) {
    this.written = written;
  }

  /** Begin to write. Only after `idle`: what waits to be written takes as much memory as the state. */
  begin(parts: PartsToWrite): void {
    if (parts.parts.length === 0) return this.written(parts.step, []);
    this.thread ??= this.open();
    this.underWay = parts.step;
    const memory = parts.parts.flatMap(({ content }) => content.map(({ buffer }) => buffer));
    this.thread.port.postMessage(parts, memory);
  }

  /**
   * Look what became of it, without waiting: a thread that computes all the time hears of it in no other way.
   *
   * @throws what the writing failed with.
   */
  look(): void {
    const next = this.thread && receiveMessageOnPort(this.thread.port);
    if (next !== undefined) this.take(next.message as Written);
    if (this.failure !== undefined) throw this.failure;
  }

  /** Wait until all is written. @throws what the writing failed with. */
  async idle(): Promise<void> {
    this.look();
    if (this.underWay !== undefined)
      await new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
    this.look();
  }

  /** End the thread. What it has under way is left unfinished. */
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
    port.on("message", (message: Written) => this.take(message));
    worker.once("error", ({ message, stack = message }: Error) => this.take({ message, code: undefined, stack }));
    return { worker, port };
  }

  private take(written: Written): void {
    const step = this.underWay!;
    this.underWay = undefined;
    if ("files" in written) this.written(step, written.files);
    else {
      const { message, code, stack } = written;
      this.failure = Object.assign(new Error(message), { stack, ...(code !== undefined && { code }) });
    }
    this.waiting?.();
    this.waiting = undefined;
  }
}
