import {
  type CollectiveModel,
  type GradientProfile,
  isStart,
  mergeGreedy,
  mergeOptimally,
  type StartStep,
  type StepProgram,
} from "@skein/cost-model";

/** A message of a step that exchanges each tensor by itself. */
export interface Message {
  /** Number of its bucket. */
  readonly bucket: number;
  /** That travel. */
  readonly bytes: number;
  /** Computation of the step before it can start. */
  readonly readySeconds: number;
}

/** Buckets of a program that travel together, and the setting of a job that makes them. */
export interface Grouping {
  readonly buckets: { readonly [key: string]: unknown };
  readonly groups: readonly (readonly number[])[];
}

const isExchange = (step: StepProgram[number]): step is StartStep => isStart(step) && /^exchange-\d+$/.test(step.scope);

/** The messages of gradients of a program, in the order in which they become ready. */
export const messagesOf = (program: StepProgram): Message[] => {
  let computed = 0;
  return program.flatMap((step) => {
    if (step.kind === "kernel") computed += step.price.seconds;
    return isExchange(step) ? [{ bucket: Number(step.scope.slice("exchange-".length)), bytes: step.bytes, readySeconds: computed }] : [];
  });
};

/** Fill groups in the order of `messages`, each up to `bytes` of dense gradients, as `buckets: fixed-size` does. */
const ofSize = (messages: readonly Message[], denseBytes: ReadonlyMap<number, number>, bytes: number): number[][] => {
  const groups: number[][] = [];
  let room = -1;
  for (const { bucket } of messages) {
    const own = denseBytes.get(bucket)!;
    if (own > room) {
      groups.push([]);
      room = bytes;
    }
    groups.at(-1)!.push(bucket);
    room -= own;
  }
  return groups;
};

const profileOf = (messages: readonly Message[]): GradientProfile => ({
  tensors: messages.map(({ bucket, bytes, readySeconds }, i) => ({
    path: String(bucket),
    bytes,
    backwardSeconds: readySeconds - (messages[i - 1]?.readySeconds ?? 0),
  })),
});

/** From 64 KiB on, each four times the one before, below all gradients together. */
const sizesBelow = (total: number): number[] => {
  const sizes: number[] = [];
  for (let bytes = 2 ** 16; bytes < total; bytes *= 4) sizes.push(bytes);
  return sizes;
};

/** More than any gradient. */
const oneBucketBytes = 2 ** 30;

/**
 * The groupings that are looked at: each tensor by itself, all in one, sizes between, and what merged-gradient planners make of the prices.
 *
 * @param denseBytes of each bucket's gradients, by which job files size buckets.
 * @param link what a message of gradients takes by its bytes.
 */
export const groupingsOf = (program: StepProgram, denseBytes: ReadonlyMap<number, number>, link: CollectiveModel): Grouping[] => {
  const messages = messagesOf(program);
  const total = messages.reduce((sum, { bucket }) => sum + denseBytes.get(bucket)!, 0);
  const profile = profileOf(messages);
  const planned = (plan: readonly (readonly string[])[]): number[][] => plan.map((paths) => paths.map(Number));
  // Planners know one message a gradient.
  const isSimple = new Set(messages.map(({ bucket }) => bucket)).size === messages.length;
  const merged = isSimple
    ? [
        { buckets: { kind: "mg-wfbp", plan: "greedy" }, groups: planned(mergeGreedy(profile, lineOf(link))) },
        { buckets: { kind: "mg-wfbp", plan: "exact" }, groups: planned(mergeOptimally(profile, link)) },
      ]
    : [];
  return [
    { buckets: { kind: "per-tensor" }, groups: messages.map(({ bucket }) => [bucket]) },
    { buckets: { kind: "fixed-size", bytes: oneBucketBytes }, groups: [messages.map(({ bucket }) => bucket)] },
    ...sizesBelow(total).map((bytes) => ({ buckets: { kind: "fixed-size", bytes }, groups: ofSize(messages, denseBytes, bytes) })),
    ...merged,
  ];
};

/** The greedy rule as published knows one line: that of the largest messages. */
const lineOf = (link: CollectiveModel): { readonly startupSeconds: number; readonly secondsPerByte: number } =>
  "pieces" in link ? link.pieces.at(-1)! : link;
