import type { WebGpuDevice } from "./device.ts";
import type { StepTimer } from "./step-timer.ts";

/** Collects commands into as few command buffers and compute passes as their order allows. */
export class Recorder {
  private readonly device: WebGpuDevice;
  private readonly timer: StepTimer | undefined;
  private encoder: GPUCommandEncoder | undefined;
  private pass: GPUComputePassEncoder | undefined;
  /** Owner of the commands in the open compute pass. Used only with a timer. */
  private timed: unknown;

  constructor(device: WebGpuDevice, timer?: StepTimer) {
    this.device = device;
    this.timer = timer;
  }

  private open(): GPUCommandEncoder {
    return (this.encoder ??= this.device.gpu.createCommandEncoder());
  }

  /** Returns an open compute pass. With a timer, each `owner` has a separate pass. */
  compute(owner: { readonly id: number }): GPUComputePassEncoder {
    if (this.timer !== undefined && this.timed !== owner) this.endPass();
    if (this.pass === undefined) {
      const timestampWrites = this.timer?.writes(owner.id);
      this.pass = this.open().beginComputePass(timestampWrites === undefined ? undefined : { timestampWrites });
      this.timed = owner;
    }
    return this.pass;
  }

  copy(from: GPUBuffer, fromOffset: number, to: GPUBuffer, toOffset: number, bytes: number): void {
    if (bytes === 0) return;
    this.endPass();
    this.open().copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
  }

  private endPass(): void {
    this.pass?.end();
    this.pass = undefined;
  }

  /** Submits all recorded commands to the device. The device executes commands in the order of these calls. */
  submit(): void {
    this.endPass();
    if (this.encoder === undefined) return;
    this.timer?.submitting();
    this.device.gpu.queue.submit([this.encoder.finish()]);
    this.encoder = undefined;
  }

  /** Records a command that resolves the timer's query set after all recorded commands, and submits all commands. */
  resolve(): void {
    this.endPass();
    this.timer?.resolve(this.open());
    this.submit();
  }
}
