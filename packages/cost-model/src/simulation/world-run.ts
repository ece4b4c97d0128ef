import { EventQueue } from "./event-queue.ts";
import type { Jitter } from "./jitter.ts";
import { type CollectiveInstance, newInstance } from "./collective-instance.ts";
import { type ProgramShape, programShape } from "./program-shape.ts";
import type { WorldClasses } from "./rank-classes.ts";
import { SharedLinks } from "./shared-links.ts";
import type { CollectiveTask, Program, SimulatedTask } from "./task.ts";
import { plainSeconds } from "./time-arithmetic.ts";

/** Settings of a simulation. */
export interface RunSettings {
  readonly steps: number;
  readonly concurrent: number;
  readonly penaltyPerFlow: number;
  readonly messageDelaySeconds: number;
  readonly jitter: Jitter | undefined;
  /** Whether to record the start and end of every task. */
  readonly keepTimes: boolean;
}

/** Progress of one class of ranks in its program. */
export interface RankRun {
  readonly rank: number;
  readonly program: Program;
  readonly shape: ProgramShape;
  /** Index of each collective's instance within a step, by the collective's index in the program. */
  readonly instanceIndices: Int32Array;
  step: number;
  /** Index of the next task to run. */
  at: number;
  clock: number;
  /** Time when the compute stream ends, by step. */
  readonly ends: Float64Array;
  /** Seconds that the compute stream waited for collectives, by step. */
  readonly exposed: Float64Array;
  /** Start and end of each task on the compute stream, by step and task. */
  readonly times: Float64Array | undefined;
  /** Number of phases admitted so far, by queue. */
  readonly admitted: Int32Array;
}

type EventKind = "ready" | "transfers" | "ends";

/**
 * Runs a simulation of one representative rank per class. A rank advances on its own clock up to a wait for a
 * collective that is not done. So events occur only for collectives: all members have started, a transfer begins, or a
 * phase ends.
 */
export class WorldRun {
  readonly ranks: readonly RankRun[];
  /** Collective instances, ordered by step, then by group class and collective. */
  readonly instances: readonly CollectiveInstance[];
  private readonly classes: WorldClasses;
  private readonly settings: RunSettings;
  private readonly events = new EventQueue<
    number,
    { readonly what: EventKind; readonly instance: CollectiveInstance; readonly version: number }
  >(plainSeconds.compare);
  private readonly links: SharedLinks<number, CollectiveInstance>;
  /** Index of the first instance of each group class within a step. */
  private readonly firstOf: readonly number[];
  /** Number of collective instances per step. */
  private readonly perStep: number;
  /** Links of the group members' streams, by group class. */
  private readonly intraLinks: readonly CollectiveInstance["links"][];
  /**
   * Lanes by group class, then by priority. A lane contains its collectives in order, and the number of collectives
   * admitted so far.
   */
  private readonly lanes: readonly ReadonlyMap<number, { readonly ordinals: readonly number[]; admitted: number }>[];
  private readonly runnable: number[] = [];
  private now = 0;

  constructor(programs: readonly Program[], classes: WorldClasses, settings: RunSettings) {
    const { steps, penaltyPerFlow, keepTimes } = settings;
    this.classes = classes;
    this.settings = settings;
    const shapes = new Map<Program, ProgramShape>();
    const shapeOf = (rank: number): ProgramShape => {
      const shape = shapes.get(programs[rank]!) ?? programShape(programs[rank]!);
      shapes.set(programs[rank]!, shape);
      return shape;
    };
    const tasksOf = classes.groups.map(({ axis, ranks }): readonly CollectiveTask[] => {
      const { tasks, along } = shapeOf(ranks[0]!);
      return (along.get(axis) ?? []).map((collective) => programs[ranks[0]!]![tasks[collective]!] as CollectiveTask);
    });
    let perStep = 0;
    this.firstOf = tasksOf.map((tasks) => (perStep += tasks.length) - tasks.length);
    this.perStep = perStep;
    this.ranks = classes.ranks.map(({ rank, groupOf }) => {
      const program = programs[rank]!;
      const shape = shapeOf(rank);
      const instanceIndices = new Int32Array(shape.tasks.length);
      for (const [axis, collectives] of shape.along)
        for (const [ordinal, collective] of collectives.entries())
          instanceIndices[collective] = this.firstOf[groupOf.get(axis)!]! + ordinal;
      return {
        rank,
        program,
        shape,
        instanceIndices,
        step: 0,
        at: 0,
        clock: 0,
        ends: new Float64Array(steps),
        exposed: new Float64Array(steps),
        times: keepTimes ? new Float64Array(2 * steps * program.length) : undefined,
        admitted: new Int32Array(shape.queues.length),
      };
    });
    // Link indices: first the links of hosts, then the links of ranks.
    this.links = new SharedLinks(
      classes.numHosts + classes.ranks.length,
      (flows) => 1 + (flows - 1) * (1 + penaltyPerFlow),
      plainSeconds,
    );
    this.intraLinks = classes.groups.map(({ members }) =>
      members.map((member) => ({ link: classes.numHosts + member, flows: 1 })),
    );
    this.lanes = tasksOf.map((tasks) => {
      const byPriority = Map.groupBy(tasks.keys(), (ordinal) => tasks[ordinal]!.priority ?? 0);
      return new Map([...byPriority].map(([priority, ordinals]) => [priority, { ordinals, admitted: 0 }]));
    });
    this.instances = Array.from({ length: steps }, (_, step) =>
      classes.groups.flatMap((group, index) =>
        tasksOf[index]!.map((task, ordinal) => newInstance(index, group, step, ordinal, task)),
      ),
    ).flat();
  }

  /** Number of events processed so far. */
  get numEvents(): number {
    return this.events.count;
  }

  /** Returns the instance of a collective, by rank class, step and task. */
  findInstance(rankClass: number, step: number, task: number): CollectiveInstance {
    const { shape, instanceIndices } = this.ranks[rankClass]!;
    return this.instances[step * this.perStep + instanceIndices[shape.numbers[task]!]!]!;
  }

  /**
   * Runs the simulation to its end.
   * @returns whether all tasks are done; false means a deadlock.
   */
  run(): boolean {
    const { ranks, settings, events } = this;
    for (const [group, lanes] of this.lanes.entries())
      for (const priority of lanes.keys())
        for (let i = 0; i < settings.concurrent; i++) this.admitGroup(group, priority);
    for (const [index, { shape }] of ranks.entries())
      for (const queue of shape.queues.keys()) for (let i = 0; i < settings.concurrent; i++) this.admit(index, queue);
    for (const index of ranks.keys()) this.runnable.push(index);
    for (;;) {
      for (let index = this.runnable.pop(); index !== undefined; index = this.runnable.pop()) this.runAhead(index);
      if (events.nextAt !== this.now) {
        this.links.settle(this.now, (instance, endsAt) =>
          events.push(endsAt, { what: "ends", instance, version: instance.version }),
        );
        if (events.nextAt === undefined) break;
        this.now = events.nextAt;
      }
      const { what, instance, version } = events.pop()!;
      if (what === "ready") {
        instance.isReady = true;
        instance.seconds = this.secondsOf(instance);
        this.tryBegin(instance);
      } else if (what === "transfers") this.links.begin(instance);
      else if (version === instance.version) this.endPhase(instance);
    }
    return (
      ranks.every(({ step }) => step === settings.steps) &&
      this.instances.every(({ endSeconds }) => endSeconds !== undefined)
    );
  }

  private runAhead(index: number): void {
    const rank = this.ranks[index]!;
    const { program, times, rank: number } = rank;
    const { steps, jitter } = this.settings;
    while (rank.step < steps) {
      if (rank.at === program.length) {
        rank.ends[rank.step] = rank.clock;
        rank.step++;
        rank.at = 0;
        continue;
      }
      const { step, at } = rank;
      const task: SimulatedTask = program[at]!;
      const begin = rank.clock;
      if (task.kind === "wait") {
        if (task.previous !== true || step > 0) {
          const instance = this.findInstance(index, task.previous === true ? step - 1 : step, task.for);
          if (instance.endSeconds === undefined) {
            instance.waiting.push(index);
            return;
          }
          rank.clock = Math.max(begin, instance.endSeconds);
          rank.exposed[step]! += rank.clock - begin;
        }
      } else {
        const seconds = task.kind === "compute" ? task.seconds : (task.startSeconds ?? 0);
        rank.clock += jitter === undefined ? seconds : seconds * jitter.computeFactor(number, step, at);
        if (task.kind === "collective") this.start(index, task, rank.clock);
      }
      if (times !== undefined) {
        const offset = 2 * (step * program.length + at);
        [times[offset], times[offset + 1]] = [begin, rank.clock];
      }
      rank.at++;
    }
  }

  /**
   * Handles the start of a collective on a member. The collective also waits for the collectives that it depends on.
   */
  private start(index: number, { after = [], afterPrevious = [] }: CollectiveTask, seconds: number): void {
    const { program, step, at } = this.ranks[index]!;
    const instance = this.findInstance(index, step, at);
    const need = (task: number, needStep: number): void => {
      if (program[task]!.kind !== "collective" || needStep < 0) return;
      const needed = this.findInstance(index, needStep, task);
      if (needed.endSeconds === undefined) {
        instance.missing++;
        needed.followers.push(instance);
      } else instance.readySeconds = Math.max(instance.readySeconds, needed.endSeconds);
    };
    for (const task of after) need(task, step);
    for (const task of afterPrevious) need(task, step - 1);
    this.arrive(instance, seconds);
  }

  private arrive(instance: CollectiveInstance, seconds: number): void {
    instance.readySeconds = Math.max(instance.readySeconds, seconds);
    if (--instance.missing === 0) this.events.push(instance.readySeconds, { what: "ready", instance, version: 0 });
  }

  private admitGroup(group: number, priority: number): void {
    const lane = this.lanes[group]!.get(priority)!;
    const { ordinals } = lane;
    const position = lane.admitted++;
    const step = Math.floor(position / ordinals.length);
    if (step >= this.settings.steps) return;
    const instance =
      this.instances[step * this.perStep + this.firstOf[group]! + ordinals[position % ordinals.length]!]!;
    instance.hasTurn = true;
    this.tryBegin(instance);
  }

  private admit(index: number, queue: number): void {
    const { shape, instanceIndices, admitted } = this.ranks[index]!;
    const entries = shape.queues[queue]!;
    const position = admitted[queue]!++;
    const step = Math.floor(position / entries.length);
    if (step >= this.settings.steps) return;
    const { collective, phase } = entries[position - step * entries.length]!;
    const instance = this.instances[step * this.perStep + instanceIndices[collective]!]!;
    if (--instance.numBusy[phase]! === 0) this.tryBegin(instance);
  }

  /** Begins the next phase of a collective if nothing blocks the phase. */
  private tryBegin(instance: CollectiveInstance): void {
    const { phases, donePhases, task, group, groupClass } = instance;
    if (!instance.isReady || !instance.hasTurn || phases.length > donePhases || instance.endSeconds !== undefined)
      return;
    const phase = task.phases[donePhases];
    const { now } = this;
    if (phase === undefined) {
      // A collective without phases ends immediately. This is an event, not a call, because thousands of such
      // collectives may follow one another.
      if (instance.version++ === 0) this.events.push(now, { what: "ends", instance, version: 1 });
      return;
    }
    if (instance.numBusy[donePhases]! > 0) return;
    const { transfer } = instance.seconds[donePhases]!;
    const startup = this.startupOf(instance, phase.messages ?? 0);
    phases.push({ stream: phase.stream, beginSeconds: now, endSeconds: Number.NaN });
    instance.links = phase.stream === "inter-node" ? group.hosts : this.intraLinks[groupClass]!;
    instance.remaining = transfer;
    instance.slowdown = 0;
    if (transfer > 0) this.events.push(now + startup, { what: "transfers", instance, version: 0 });
    else this.events.push(now + startup, { what: "ends", instance, version: ++instance.version });
  }

  /**
   * Returns the start-up seconds of a phase that begins now. While a member computes, each message takes longer. When
   * all members wait, the remaining messages take their normal time. The simulation always advances a rank to its next
   * wait, so the rank's clock is a time until which the rank certainly computes.
   */
  private startupOf({ seconds, donePhases, group }: CollectiveInstance, messages: number): number {
    const { startup } = seconds[donePhases]!;
    const delayed = startup + messages * this.settings.messageDelaySeconds;
    if (delayed === startup) return startup;
    const computing = group.members.reduce((most, member) => Math.max(most, this.ranks[member]!.clock - this.now), 0);
    return delayed <= computing ? delayed : computing + startup * (1 - computing / delayed);
  }

  /** Returns the seconds of each phase on the slowest member. */
  private secondsOf({ group, ordinal, step, task }: CollectiveInstance): CollectiveInstance["seconds"] {
    const seconds = task.phases.map(() => ({ startup: 0, transfer: 0 }));
    const { jitter } = this.settings;
    let known: Program | undefined;
    for (const member of group.members) {
      const { program, shape, rank } = this.ranks[member]!;
      if (jitter?.sameOnRanks !== false && program === known) continue;
      known = program;
      const index = shape.tasks[shape.along.get(group.axis)![ordinal]!]!;
      const factor = jitter?.communicationFactor(rank, step, index) ?? 1;
      for (const [i, { startupSeconds, transferSeconds }] of (program[index] as CollectiveTask).phases.entries()) {
        const slowest = seconds[i]!;
        slowest.startup = Math.max(slowest.startup, startupSeconds * factor);
        slowest.transfer = Math.max(slowest.transfer, transferSeconds * factor);
      }
    }
    return seconds;
  }

  private endPhase(instance: CollectiveInstance): void {
    const { phases, group, task, ordinal } = instance;
    const { now } = this;
    const ended = phases[instance.donePhases];
    if (ended !== undefined) {
      ended.endSeconds = now;
      if (instance.slowdown > 0) this.links.end(instance);
      const done = instance.donePhases++;
      let [known, queue]: [ProgramShape | undefined, number] = [undefined, 0];
      for (const member of group.members) {
        const { shape } = this.ranks[member]!;
        if (shape !== known) [known, queue] = [shape, shape.queueOf[shape.along.get(group.axis)![ordinal]!]![done]!];
        this.admit(member, queue);
      }
    }
    if (instance.donePhases < task.phases.length) {
      this.tryBegin(instance);
      return;
    }
    instance.endSeconds = now;
    for (const follower of instance.followers) this.arrive(follower, now);
    for (const index of instance.waiting) this.runnable.push(index);
    this.admitGroup(instance.groupClass, task.priority ?? 0);
  }
}
