import { EventQueue } from "./event-queue.ts";
import type { Jitter } from "./jitter.ts";
import { type Meeting, newMeeting } from "./meeting.ts";
import { type ProgramShape, programShape } from "./program-shape.ts";
import type { WorldClasses } from "./rank-classes.ts";
import { SharedLinks } from "./shared-links.ts";
import type { CollectiveTask, Program, Task } from "./task.ts";
import { plainSeconds } from "./time-arithmetic.ts";

/** What a run of a world depends on beside it. */
export interface RunSettings {
  readonly steps: number;
  readonly concurrent: number;
  readonly penaltyPerFlow: number;
  readonly messageDelaySeconds: number;
  readonly jitter: Jitter | undefined;
  /** Whether the times of tasks are kept. */
  readonly keepTimes: boolean;
}

/** One class of ranks on its way through its program. */
export interface RankRun {
  readonly rank: number;
  readonly program: Program;
  readonly shape: ProgramShape;
  /** By collective: which meeting of a step it is. */
  readonly meetingOf: Int32Array;
  step: number;
  /** The task that comes next. */
  at: number;
  clock: number;
  /** By step: when the compute stream was through, and how long it stood still. */
  readonly ends: Float64Array;
  readonly exposed: Float64Array;
  /** By step and task: begin and end on the compute stream. */
  readonly times: Float64Array | undefined;
  /** By queue: phases that were let in. */
  readonly admitted: Int32Array;
}

type Happening = "ready" | "transfers" | "ends";

/**
 * Runs a world of classes. A rank runs ahead by its own clock up to a wait for a collective that is not done; so there
 * are events for collectives only: all members have started, a transfer begins, a phase ends.
 */
export class WorldRun {
  readonly ranks: readonly RankRun[];
  /** By step, then by group class and collective. */
  readonly meetings: readonly Meeting[];
  private readonly classes: WorldClasses;
  private readonly settings: RunSettings;
  private readonly events = new EventQueue<
    number,
    { readonly what: Happening; readonly meeting: Meeting; readonly version: number }
  >(plainSeconds.compare);
  private readonly links: SharedLinks<number, Meeting>;
  /** First meeting of each group class in a step, and meetings in a step. */
  private readonly firstOf: readonly number[];
  private readonly perStep: number;
  /** By group class: the links that its members' own streams are. */
  private readonly intraLinks: readonly Meeting["links"][];
  /** By group class and priority: collectives in order, and how many were let in. */
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
      const meetingOf = new Int32Array(shape.tasks.length);
      for (const [axis, collectives] of shape.along)
        for (const [ordinal, collective] of collectives.entries())
          meetingOf[collective] = this.firstOf[groupOf.get(axis)!]! + ordinal;
      return {
        rank,
        program,
        shape,
        meetingOf,
        step: 0,
        at: 0,
        clock: 0,
        ends: new Float64Array(steps),
        exposed: new Float64Array(steps),
        times: keepTimes ? new Float64Array(2 * steps * program.length) : undefined,
        admitted: new Int32Array(shape.queues.length),
      };
    });
    // Links of hosts first, then those of ranks.
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
    this.meetings = Array.from({ length: steps }, (_, step) =>
      classes.groups.flatMap((group, index) =>
        tasksOf[index]!.map((task, ordinal) => newMeeting(index, group, step, ordinal, task)),
      ),
    ).flat();
  }

  /** How many events there were. */
  get numEvents(): number {
    return this.events.count;
  }

  /** The meeting of a collective, by rank class and task. */
  meetingOf(rankClass: number, step: number, task: number): Meeting {
    const { shape, meetingOf } = this.ranks[rankClass]!;
    return this.meetings[step * this.perStep + meetingOf[shape.numbers[task]!]!]!;
  }

  /** Run to the end. @returns whether all is done; where it is not, ranks wait for each other in a circle. */
  run(): boolean {
    const { ranks, settings, events } = this;
    for (const [group, lanes] of this.lanes.entries())
      for (const priority of lanes.keys())
        for (let i = 0; i < settings.concurrent; i++) this.letGroupOn(group, priority);
    for (const [index, { shape }] of ranks.entries())
      for (const queue of shape.queues.keys()) for (let i = 0; i < settings.concurrent; i++) this.letIn(index, queue);
    for (const index of ranks.keys()) this.runnable.push(index);
    for (;;) {
      for (let index = this.runnable.pop(); index !== undefined; index = this.runnable.pop()) this.runAhead(index);
      if (events.nextAt !== this.now) {
        this.links.settle(this.now, (meeting, endsAt) =>
          events.push(endsAt, { what: "ends", meeting, version: meeting.version }),
        );
        if (events.nextAt === undefined) break;
        this.now = events.nextAt;
      }
      const { what, meeting, version } = events.pop()!;
      if (what === "ready") {
        meeting.isReady = true;
        meeting.seconds = this.secondsOf(meeting);
        this.tryBegin(meeting);
      } else if (what === "transfers") this.links.begin(meeting);
      else if (version === meeting.version) this.endPhase(meeting);
    }
    return (
      ranks.every(({ step }) => step === settings.steps) &&
      this.meetings.every(({ endSeconds }) => endSeconds !== undefined)
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
      const task: Task = program[at]!;
      const begin = rank.clock;
      if (task.kind === "wait") {
        if (task.previous !== true || step > 0) {
          const meeting = this.meetingOf(index, task.previous === true ? step - 1 : step, task.for);
          if (meeting.endSeconds === undefined) {
            meeting.waiting.push(index);
            return;
          }
          rank.clock = Math.max(begin, meeting.endSeconds);
          rank.exposed[step]! += rank.clock - begin;
        }
      } else {
        const seconds = task.kind === "compute" ? task.seconds : (task.startSeconds ?? 0);
        rank.clock += jitter === undefined ? seconds : seconds * jitter.computeFactor(number, step, at);
        if (task.kind === "collective") this.start(index, task, rank.clock);
      }
      if (times !== undefined) {
        const place = 2 * (step * program.length + at);
        [times[place], times[place + 1]] = [begin, rank.clock];
      }
      rank.at++;
    }
  }

  /** A member has started a collective: it comes when what it needs is done, too. */
  private start(index: number, { after = [], afterPrevious = [] }: CollectiveTask, seconds: number): void {
    const { program, step, at } = this.ranks[index]!;
    const meeting = this.meetingOf(index, step, at);
    const need = (task: number, ofStep: number): void => {
      if (program[task]!.kind !== "collective" || ofStep < 0) return;
      const needed = this.meetingOf(index, ofStep, task);
      if (needed.endSeconds === undefined) {
        meeting.missing++;
        needed.followers.push(meeting);
      } else meeting.readySeconds = Math.max(meeting.readySeconds, needed.endSeconds);
    };
    for (const task of after) need(task, step);
    for (const task of afterPrevious) need(task, step - 1);
    this.come(meeting, seconds);
  }

  private come(meeting: Meeting, seconds: number): void {
    meeting.readySeconds = Math.max(meeting.readySeconds, seconds);
    if (--meeting.missing === 0) this.events.push(meeting.readySeconds, { what: "ready", meeting, version: 0 });
  }

  private letGroupOn(group: number, priority: number): void {
    const lane = this.lanes[group]!.get(priority)!;
    const { ordinals } = lane;
    const place = lane.admitted++;
    const step = Math.floor(place / ordinals.length);
    if (step >= this.settings.steps) return;
    const meeting = this.meetings[step * this.perStep + this.firstOf[group]! + ordinals[place % ordinals.length]!]!;
    meeting.hasTurn = true;
    this.tryBegin(meeting);
  }

  private letIn(index: number, queue: number): void {
    const { shape, meetingOf, admitted } = this.ranks[index]!;
    const entries = shape.queues[queue]!;
    const place = admitted[queue]!++;
    const step = Math.floor(place / entries.length);
    if (step >= this.settings.steps) return;
    const { collective, phase } = entries[place - step * entries.length]!;
    const meeting = this.meetings[step * this.perStep + meetingOf[collective]!]!;
    if (--meeting.held[phase]! === 0) this.tryBegin(meeting);
  }

  /** Begin the next phase if nothing holds it up. */
  private tryBegin(meeting: Meeting): void {
    const { phases, donePhases, task, group, groupClass } = meeting;
    if (!meeting.isReady || !meeting.hasTurn || phases.length > donePhases || meeting.endSeconds !== undefined) return;
    const phase = task.phases[donePhases];
    const { now } = this;
    if (phase === undefined) {
      // Without phases; an event, not a call, since thousands may follow one another.
      if (meeting.version++ === 0) this.events.push(now, { what: "ends", meeting, version: 1 });
      return;
    }
    if (meeting.held[donePhases]! > 0) return;
    const { transfer } = meeting.seconds[donePhases]!;
    const startup = this.startupOf(meeting, phase.messages ?? 0);
    phases.push({ stream: phase.stream, beginSeconds: now, endSeconds: Number.NaN });
    meeting.links = phase.stream === "inter-node" ? group.hosts : this.intraLinks[groupClass]!;
    meeting.left = transfer;
    meeting.slowdown = 0;
    if (transfer > 0) this.events.push(now + startup, { what: "transfers", meeting, version: 0 });
    else this.events.push(now + startup, { what: "ends", meeting, version: ++meeting.version });
  }

  /**
   * The start-up of a phase that begins now. While a member computes, each message takes longer; once all of them wait,
   * the rest goes on at its own pace. A rank runs ahead up to its next wait, so its clock says how long it computes for
   * certain.
   */
  private startupOf({ seconds, donePhases, group }: Meeting, messages: number): number {
    const { startup } = seconds[donePhases]!;
    const delayed = startup + messages * this.settings.messageDelaySeconds;
    if (delayed === startup) return startup;
    const computing = group.members.reduce((most, member) => Math.max(most, this.ranks[member]!.clock - this.now), 0);
    return delayed <= computing ? delayed : computing + startup * (1 - computing / delayed);
  }

  /** What the slowest member's part of each phase takes. */
  private secondsOf({ group, ordinal, step, task }: Meeting): Meeting["seconds"] {
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

  private endPhase(meeting: Meeting): void {
    const { phases, group, task, ordinal } = meeting;
    const { now } = this;
    const ended = phases[meeting.donePhases];
    if (ended !== undefined) {
      ended.endSeconds = now;
      if (meeting.slowdown > 0) this.links.end(meeting);
      const done = meeting.donePhases++;
      let [known, queue]: [ProgramShape | undefined, number] = [undefined, 0];
      for (const member of group.members) {
        const { shape } = this.ranks[member]!;
        if (shape !== known) [known, queue] = [shape, shape.queueOf[shape.along.get(group.axis)![ordinal]!]![done]!];
        this.letIn(member, queue);
      }
    }
    if (meeting.donePhases < task.phases.length) {
      this.tryBegin(meeting);
      return;
    }
    meeting.endSeconds = now;
    for (const follower of meeting.followers) this.come(follower, now);
    for (const index of meeting.waiting) this.runnable.push(index);
    this.letGroupOn(meeting.groupClass, task.priority ?? 0);
  }
}
