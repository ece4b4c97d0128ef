import type { Communicators, SpanSink } from "@skein/tensor-core";
import { beginCollective, type CollectiveHandle, CollectiveSpans } from "@skein/tensor-core/backend";
import type { WebGpuDevice } from "./device.ts";
import { type HostMemory, padded, readBuffer } from "./host-transfer.ts";
import type { LoweredStep } from "./lower.ts";
import type { Recorder } from "./recorder.ts";
import type { BufferRange } from "./resolve-bindings.ts";

type StartStep = LoweredStep & { readonly kind: "start" };

/** A collective that was passed to its communicator. `handle` is absent if the collective is already complete. */
interface StartedCollective {
  readonly handle: CollectiveHandle | undefined;
}

/** A collective in progress. Its request is passed to the communicator as soon as the operands have been read back. */
interface Exchange {
  readonly step: StartStep;
  readonly started: Promise<StartedCollective>;
  readonly outputs: readonly Uint8Array[];
  readonly spans: CollectiveSpans | undefined;
  /** Releases the host memory of the collective. Further calls have no effect. */
  readonly release: () => void;
}

interface ExchangeParts {
  readonly device: WebGpuDevice;
  readonly hostMemory: HostMemory;
  readonly communicators: Communicators;
  readonly sink: SpanSink | undefined;
  readonly bufferAt: (at: BufferRange) => GPUBuffer;
}

/** The collectives of one run, from the read-back of the operands to the upload of the results. */
export class Exchanges {
  private readonly parts: ExchangeParts;
  /** Collectives in progress, by the index of the step that starts them. */
  private readonly inProgress = new Map<number, Exchange>();
  /**
   * Promise that the latest collective was passed to its communicator. The next collective awaits this promise before
   * its start.
   */
  private order: Promise<unknown> = Promise.resolve();

  constructor(parts: ExchangeParts) {
    this.parts = parts;
  }

  /**
   * Submits the recorded commands, reads the operands back, and passes them to the communicator in the order of the
   * graph. Returns before the operands have been read, so that recording continues.
   *
   * @param staging One buffer per operand.
   */
  begin(index: number, step: StartStep, staging: readonly GPUBuffer[], recorder: Recorder): void {
    const { device, hostMemory, communicators, sink, bufferAt } = this.parts;
    const { order } = this;
    const { plan } = step;
    const since = sink?.now() ?? 0;
    const spans = sink && new CollectiveSpans(sink, step.node, plan, communicators);
    const inPlace =
      plan.inputBytes[0] === plan.outputBytes[0] &&
      (plan.request.kind === "all-reduce" || plan.request.kind === "broadcast" || plan.request.kind === "reduce");
    const inputs = plan.inputBytes.map((bytes) => hostMemory.allocate(bytes));
    const outputs = inPlace ? inputs : plan.outputBytes.map((bytes) => hostMemory.allocate(bytes));
    step.inputs.forEach((operand, i) =>
      recorder.copy(bufferAt(operand), operand.offset, staging[i]!, 0, operand.bytes),
    );
    recorder.submit();
    const reads = inputs.map((input, i) => readBuffer(device, staging[i]!, input));
    const started = (async () => {
      // Even after a failure, wait until no read is running before the buffers are released.
      await Promise.allSettled([order, ...reads]);
      // Do not start after a failed start: a peer would match this collective with the failed one.
      await order;
      await Promise.all(reads);
      spans?.handedOver();
      return { handle: beginCollective(plan, inputs, outputs, communicators) };
    })();
    started.catch(() => undefined); // a rejection is reported when the collective is awaited
    let isAllocated = true;
    const release = (): void => {
      if (!isAllocated) return;
      isAllocated = false;
      for (const bytes of new Set([...inputs, ...outputs])) hostMemory.release(bytes);
    };
    spans?.started(since);
    this.order = started;
    this.inProgress.set(index, { step, started, outputs, spans, release });
  }

  /** Waits for the collective that was started at index `start`, and writes its results. */
  async finish(start: number): Promise<void> {
    const { device, communicators, bufferAt } = this.parts;
    // Waiting may block this thread and delay the read-back of other operands. The device executes commands in order,
    // so it uses the results only after all submitted work. Therefore first wait until all earlier collectives have
    // been passed to their communicators, which costs no time.
    await this.order;
    const { step, started, outputs, spans, release } = this.inProgress.get(start)!;
    const { handle } = await started;
    spans?.reached();
    // After a failed wait, the communicator may still write the result, so this memory is not reused.
    if (handle !== undefined) await communicators[step.plan.axis]!.wait(handle);
    try {
      device.check();
      spans?.done(step.plan, handle, communicators);
      step.outputs.forEach((result, i) => {
        const bytes = outputs[i]!;
        if (bytes.byteLength > 0) device.gpu.queue.writeBuffer(bufferAt(result), result.offset, padded(bytes));
      });
    } finally {
      release();
    }
  }

  /** Waits until all reads of operands have ended, and releases host memory. */
  async close(): Promise<void> {
    for (const { started, release } of this.inProgress.values()) {
      // If a request was never awaited, the communicator may still write the result, so this memory is not reused.
      await started.then(({ handle }) => handle ?? release(), release);
    }
  }
}
