import type { Worker } from "node:worker_threads";
import { startThread } from "../start-thread.ts";
import type { Loss } from "./control-messages.ts";
import type { RendezvousEvent, RendezvousOptions } from "./coordinator-options.ts";
import type { JoinOptions } from "./member.ts";
import { type PostedError, revivedError } from "./posted-error.ts";
import { openPulse, type Pulse } from "../failure-detection/pulse.ts";
import type { RankAddress, Roster } from "./roster.ts";

/** Start parameters of a rendezvous thread. */
export type RendezvousTask = { readonly beats: Int32Array } & (
  | { readonly role: "coordinator"; readonly options: Omit<RendezvousOptions, "onEvent"> }
  | { readonly role: "member"; readonly options: Omit<JoinOptions, "onNote" | "onWaiting" | "signal"> }
);

/** Command to a rendezvous thread. */
export type RendezvousThreadCommand =
  | { readonly type: "relay"; readonly payload: Uint8Array; readonly process: number | undefined }
  | { readonly type: "lost"; readonly rank: number; readonly reason: string }
  /** Request to a member: cancel the join, unless all ranks have already joined. */
  | { readonly type: "give up" }
  | { readonly type: "close"; readonly stopped?: string | undefined };

/** Event from a rendezvous thread. */
export type RendezvousThreadEvent =
  | { readonly type: "listening"; readonly address: RankAddress }
  | { readonly type: "joined"; readonly roster: Roster; readonly process: number }
  /** The coordinator cannot listen, or the join or rendezvous failed. */
  | { readonly type: "failed"; readonly error: PostedError }
  /** Log event of a coordinator. */
  | { readonly type: "event"; readonly event: RendezvousEvent }
  /** Event of a member: a human-readable log line. */
  | { readonly type: "note"; readonly line: string }
  /** Event of a member: a human-readable line about the event that the member waits for. */
  | { readonly type: "waiting"; readonly line: string }
  | { readonly type: "message"; readonly message: unknown }
  | { readonly type: "lost"; readonly loss: Loss }
  /** A process of the world has ended. For a member: the coordinator has ended. */
  | { readonly type: "gone"; readonly process: number }
  | { readonly type: "closed" };

/**
 * The thread that owns the control connections of a process. The connections stay alive while the main thread reads or
 * writes files, or computes. The thread keeps the process alive until `release`.
 */
export class RendezvousThread {
  readonly #worker: Worker;
  readonly #pulse: Pulse = openPulse();
  readonly #closed = Promise.withResolvers<void>();

  /**
   * Starts the thread.
   *
   * @param take called with each event. An error that ends the thread is delivered as "failed".
   */
  constructor(
    task:
      | Omit<Extract<RendezvousTask, { role: "coordinator" }>, "beats">
      | Omit<Extract<RendezvousTask, { role: "member" }>, "beats">,
    take: (event: RendezvousThreadEvent) => void,
  ) {
    const workerData = { ...task, beats: this.#pulse.beats } satisfies RendezvousTask;
    this.#worker = startThread(() => new URL("./rendezvous-worker.ts", import.meta.url), {
      workerData,
      name: `rendezvous, ${task.role}`,
    });
    this.#worker.on("message", (event: RendezvousThreadEvent) => {
      if (event.type === "closed") this.#closed.resolve();
      else take(event);
    });
    this.#worker.once("error", (error: Error) =>
      take({ type: "failed", error: { name: error.name, kind: undefined, code: undefined, message: error.message } }),
    );
    this.#worker.once("exit", () => {
      this.#pulse.stop();
      this.#closed.resolve();
    });
  }

  send(command: RendezvousThreadCommand): void {
    this.#worker.postMessage(command);
  }

  /** Sends an encoded message to one process, or to all processes if `process` is absent. */
  relay(encoded: Uint8Array, process?: number): void {
    const payload = new Uint8Array(encoded); // A copy, because the encoder reuses its memory.
    const command: RendezvousThreadCommand = { type: "relay", payload, process };
    this.#worker.postMessage(command, [payload.buffer]);
  }

  /** Allows the process to exit while the thread is running. */
  release(): void {
    this.#worker.unref();
  }

  /** Sends a goodbye, then stops the thread. */
  async close(stopped?: string): Promise<void> {
    this.#worker.ref();
    this.send({ type: "close", stopped });
    await this.#closed.promise;
    await this.#worker.terminate();
  }
}

/** Returns the error of a failed rendezvous. */
export const failureOf = ({ error }: Extract<RendezvousThreadEvent, { type: "failed" }>): Error => revivedError(error);
