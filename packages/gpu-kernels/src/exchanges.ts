import type { Communicators, SpanSink } from "@skein/tensor-core";
import { beginCollective, type CollectiveHandle, CollectiveSpans } from "@skein/tensor-core/backend";
import type { Device } from "./device.ts";
import { type HostMemory, padded, readBuffer } from "./host-transfer.ts";
import type { LoweredStep } from "./lower.ts";
import type { Recorder } from "./recorder.ts";
import type { Stretch } from "./resolve-bindings.ts";

type StartStep = LoweredStep & { readonly kind: "start" };

/** A collective that its communicator has; without a handle its result is there. */
interface Begun {
  readonly handle: CollectiveHandle | undefined;
}

/** A collective under way: its request is handed over as soon as the operands have been read back. */
interface Exchange {
  readonly step: StartStep;
  readonly started: Promise<Begun>;
  readonly outputs: readonly Uint8Array[];
  readonly spans: CollectiveSpans | undefined;
  /** Give the host memory back, once. */
  readonly release: () => void;
}

interface ExchangeParts {
  readonly device: Device;
  readonly hostMemory: HostMemory;
  readonly communicators: Communicators;
  readonly sink: SpanSink | undefined;
  readonly bufferAt: (at: Stretch) => GPUBuffer;
}

/** The collectives of one run, from when their operands are read back until their results are on the device. */
export class Exchanges {
  private readonly parts: ExchangeParts;
  /** By the index of the step that starts them. */
  private readonly underWay = new Map<number, Exchange>();
  /** The last start. */
  private order: Promise<unknown> = Promise.resolve();

  constructor(parts: ExchangeParts) {
    this.parts = parts;
  }

  /**
   * Submit what was recorded, read the operands back and hand them to the communicator, in the order of the graph,
   * while recording goes on.
   *
   * @param staging a buffer for each operand.
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
      await Promise.allSettled([order, ...reads]); // whatever fails, no read goes on in buffers that are given back
      await order; // after one that could not start none may: a peer would take the next for it
      await Promise.all(reads);
      spans?.handedOver();
      return { handle: beginCollective(plan, inputs, outputs, communicators) };
    })();
    started.catch(() => undefined); // told where it is awaited
    let held = true;
    const release = (): void => {
      if (!held) return;
      held = false;
      for (const bytes of new Set([...inputs, ...outputs])) hostMemory.release(bytes);
    };
    spans?.started(since);
    this.order = started;
    this.underWay.set(index, { step, started, outputs, spans, release });
  }

  /** Wait for the collective that began at step `start`, and write its results. */
  async finish(start: number): Promise<void> {
    const { device, communicators, bufferAt } = this.parts;
    // Waiting may block this thread, and what is read back meanwhile would lie here. The device works in order: it
    // reaches none of the results before it has done all that was submitted, so nothing is lost by handing everything
    // over first.
    await this.order;
    const { step, started, outputs, spans, release } = this.underWay.get(start)!;
    const { handle } = await started;
    spans?.reached();
    // Of a request whose wait fails, the communicator may still write the result: that memory is lost with the group.
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

  /** Wait until no operand is being read back, and give host memory back. */
  async close(): Promise<void> {
    for (const { started, release } of this.underWay.values()) {
      // Of a request that nobody waited for, the communicator may still write the result: that memory is lost with the
      // group.
      await started.then(({ handle }) => handle ?? release(), release);
    }
  }
}
