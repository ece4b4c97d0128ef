import type { Arena } from "../arena.ts";
import { HelperError } from "../errors.ts";
import { ParallelRegion, RegionRecord, regionBytes, type WaitRule } from "./parallel-region.ts";
import type { HelperSetup, HelperThread } from "./start-helper.ts";
import type { Call, Team, TeamFunctions } from "./team.ts";

/**
 * Minimum nanoseconds of work per part. Passing a part to a polling helper takes 1 to 2 µs, waking a sleeping helper
 * about 10 µs.
 */
const minNanoseconds = 8000;

export interface ThreadTeamParts {
  readonly threads: number;
  readonly arena: Arena;
  readonly functions: TeamFunctions;
  readonly wait: WaitRule;
  /** Starts a helper thread that uses the shared words of the team. */
  readonly start: (setup: Pick<HelperSetup, "shared" | "spins">) => HelperThread;
}

/** A team that consists of the thread of a rank, and helper threads that run parts of its kernels. */
export class ThreadTeam implements Team {
  readonly threads: number;
  private readonly parts: ThreadTeamParts;
  private readonly region: ParallelRegion;
  private readonly helpers: readonly HelperThread[];
  private readonly record = new RegionRecord();
  /** Byte address of the memory in which helpers find the recorded calls of a region. */
  private address = 0;
  private capacity = 0;
  private lost: HelperError | undefined;
  private closed = false;

  private constructor(parts: ThreadTeamParts) {
    this.parts = parts;
    this.threads = parts.threads;
    const shared = new SharedArrayBuffer(regionBytes);
    this.region = new ParallelRegion(shared, parts.arena.memory, parts.functions);
    this.helpers = Array.from({ length: parts.threads - 1 }, () => parts.start({ shared, spins: parts.wait.spins }));
    for (const { ended } of this.helpers)
      void ended.then((reason) => {
        if (!this.closed) this.lost ??= new HelperError(`a helper thread of the kernels has ended: ${reason}`);
      });
  }

  /**
   * Starts the helpers. Resolves when every helper waits for work. @throws HelperError if a helper cannot be started.
   */
  static async open(parts: ThreadTeamParts): Promise<ThreadTeam> {
    const team = new ThreadTeam(parts);
    const failed = team.helpers.map(({ ended }) =>
      ended.then((reason) => {
        throw new HelperError(`a helper thread of the kernels did not start: ${reason}`);
      }),
    );
    try {
      await Promise.race([Promise.all(team.helpers.map(({ ready }) => ready)), ...failed]);
    } catch (error) {
      await team.close();
      throw error;
    }
    return team;
  }

  indexOf(name: string): number {
    return this.parts.functions.indexOf(name);
  }

  partsOf(nanoseconds: number, most: number): number {
    return Math.max(1, Math.min(this.threads, most, Math.floor(nanoseconds / minNanoseconds)));
  }

  run(parts: number, write: (part: number, call: Call) => void): void {
    const { functions, wait } = this.parts;
    if (parts === 1) return write(0, functions.call);
    if (this.lost !== undefined) throw this.lost;
    this.publish(parts, write);
    let own = 0;
    try {
      write(0, functions.call);
      while (this.region.help()) own++;
    } finally {
      // Wait for the helpers even after a failure in this thread, because later code may reuse memory that helpers
      // still write.
      while (this.region.skip()) own++;
      if (!this.region.join(parts - 1 - own, wait))
        this.lost = new HelperError(
          `a helper thread of the kernels has not answered for ${wait.milliseconds / 1000} s; check whether the process is short of memory`,
        );
    }
    const failure = this.region.takeFailure();
    if (failure !== undefined) throw new HelperError(`a kernel failed in a helper thread: ${failure}`);
    if (this.lost !== undefined) throw this.lost;
  }

  private publish(parts: number, write: (part: number, call: Call) => void): void {
    const { record } = this;
    record.begin(parts);
    for (let part = 1; part < parts; part++) {
      record.beginPart(part);
      write(part, record.call);
    }
    const { arena } = this.parts;
    const bytes = record.written.byteLength;
    if (bytes > this.capacity) {
      arena.release(this.address);
      this.address = arena.allocate(2 * bytes);
      this.capacity = 2 * bytes;
    }
    arena.bytesAt(this.address, bytes).set(new Uint8Array(record.written.buffer, 0, bytes));
    this.region.open(parts, this.address, bytes);
  }

  /** Stops the helpers. */
  async close(): Promise<void> {
    this.closed = true;
    this.lost ??= new HelperError("the backend was closed; create a new backend");
    this.region.close();
    await Promise.all(this.helpers.map((helper) => helper.stop()));
    this.parts.arena.release(this.address);
  }
}
