import type { WebGpuDevice } from "./device.ts";

/** Time range in which the commands of one owner, such as a graph node, ran, in seconds on the host's clock. */
export interface TimedRange {
  readonly owner: number;
  readonly begin: number;
  readonly end: number;
}

/** The timed compute passes of one submission, and the host time of the submission. */
interface Submission {
  /** Index of the first timed pass. The field `end` is the index after the last timed pass. */
  readonly first: number;
  readonly end: number;
  readonly seconds: number;
}

const queriesPerSet = 4096; // WebGPU's limit of queries per set

/**
 * Measures timestamps around the compute passes of one run.
 *
 * The device's clock has a different origin. No pass begins on the device before its submission. Therefore the clock
 * offset, host minus device, is at least (submission time on the host − begin of the first pass on the device), for
 * every submission. The maximum over all submissions is used as the offset.
 */
export class StepTimer {
  private readonly device: WebGpuDevice;
  private readonly now: () => number;
  private readonly submissions: Submission[] = [];
  private readonly owners: number[] = [];
  private readonly sets: GPUQuerySet[] = [];
  private resolved: GPUBuffer | undefined;
  private staging: GPUBuffer | undefined;

  /**
   * Creates a timer for the compute passes of one run.
   *
   * @param now Returns the time in seconds on the host's clock.
   */
  constructor(device: WebGpuDevice, now: () => number) {
    this.device = device;
    this.now = now;
  }

  /** Records the host time. Must be called before each submission. */
  submitting(): void {
    const first = this.submissions.at(-1)?.end ?? 0;
    if (this.owners.length > first) this.submissions.push({ first, end: this.owners.length, seconds: this.now() });
  }

  writes(owner: number): GPUComputePassTimestampWrites {
    const index = 2 * this.owners.push(owner) - 2;
    const at = index % queriesPerSet;
    if (at === 0) this.sets.push(this.device.gpu.createQuerySet({ type: "timestamp", count: queriesPerSet }));
    return { querySet: this.sets.at(-1)!, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 };
  }

  resolve(encoder: GPUCommandEncoder): void {
    if (this.owners.length === 0) return;
    const size = 16 * this.owners.length;
    this.resolved = this.device.gpu.createBuffer({ size, usage: 0x200 | 0x04 }); // QUERY_RESOLVE | COPY_SRC
    this.staging = this.device.gpu.createBuffer({ size, usage: 0x01 | 0x08 }); // MAP_READ | COPY_DST
    this.sets.forEach((set, i) => {
      const count = Math.min(queriesPerSet, 2 * this.owners.length - i * queriesPerSet);
      encoder.resolveQuerySet(set, 0, count, this.resolved!, 8 * i * queriesPerSet);
    });
    encoder.copyBufferToBuffer(this.resolved, 0, this.staging, 0, size);
  }

  /** Returns the measured time ranges. Call after the commands have been submitted. */
  async read(): Promise<TimedRange[]> {
    if (this.staging === undefined) return [];
    await this.device.settle(this.staging.mapAsync(1)); // MAP_READ
    const nanoseconds = new BigUint64Array(this.staging.getMappedRange().slice(0));
    for (const buffer of [this.staging, this.resolved!]) buffer.destroy();
    for (const set of this.sets) set.destroy();
    const onDevice = (i: number): number => Number(nanoseconds[i]! - nanoseconds[0]!) / 1e9;
    const ahead = Math.max(...this.submissions.map(({ first, seconds }) => seconds - onDevice(2 * first)));
    const seconds = (i: number): number => ahead + onDevice(i);
    return this.owners.map((owner, i) => ({ owner, begin: seconds(2 * i), end: seconds(2 * i + 1) }));
  }
}
