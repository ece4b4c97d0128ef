import type { BlockingCommunicator } from "@skein/collectives/node";
import { inPlaceKinds } from "@skein/collectives/transport";
import { bytesPerElement } from "@skein/tensor-core";
import type { CollectiveHandle, CollectiveKind, CollectiveRequest } from "@skein/tensor-core/backend";

/** Returns a generator of random numbers in [0, 1), equal on all ranks (mulberry32). */
const random = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
};

const kinds: readonly CollectiveKind[] = [
  "all-reduce",
  "all-reduce",
  "all-gather",
  "all-to-all",
  "reduce-scatter",
  "broadcast",
  "reduce",
  "reduce",
  "barrier",
];
// Sizes around 16 KiB, the maximum size of requests that use schedules.
const counts = [0, 1, 1024, 4095, 4096, 4097, 9000];

/** Returns element `at` of a rank's input for request `number`. Sums of the elements depend on their order. */
const element = (rank: number, number: number, at: number): number =>
  Math.fround(Math.sin(7 * rank + 13 * number + at));

interface Running {
  readonly number: number;
  readonly request: CollectiveRequest;
  readonly group: BlockingCommunicator;
  readonly handle: CollectiveHandle;
  readonly n: number;
}

/** Returns the expected element `at` of the output. Sums are folded in rank order. */
const expected = ({ request: { kind, root }, number, group: { rank, members }, n }: Running, at: number): number => {
  const own = members!;
  const sum = (index: number): number =>
    own.reduce((total, member) => Math.fround(total + element(member, number, index)), -0);
  if (kind === "all-reduce") return sum(at);
  if (kind === "reduce") return rank === root ? sum(at) : 0;
  if (kind === "reduce-scatter") return sum(rank * n + at);
  if (kind === "broadcast") return element(own[root!]!, number, at);
  const from = Math.floor(at / n);
  return element(own[from]!, number, kind === "all-to-all" ? rank * n + (at % n) : at % n);
};

/**
 * Starts and waits for collectives of all kinds, of two groups and all priorities, with sizes around the threshold for
 * MPI's own collectives. Some collectives are awaited immediately, others later, in an order that differs between
 * ranks.
 *
 * @returns descriptions of wrong elements, and the number of compared elements.
 */
export const runMixedProgram = (
  communicator: BlockingCommunicator,
  memory: WebAssembly.Memory,
  seed: number,
): { readonly wrong: readonly string[]; readonly tested: number } => {
  const { worldSize } = communicator;
  const draw = random(seed);
  const ownDraw = random(seed + 1000 * (communicator.rank + 1));
  const pick = <T>(list: readonly T[], by = draw): T => list[Math.floor(by() * list.length)]!;
  const all = Array.from({ length: worldSize }, (_, rank) => rank);
  const reversed = communicator.split([all.toReversed()], "reversed");
  const wrong: string[] = [];
  let tested = 0;
  let next = 1024;
  const region = (count: number): Float32Array => {
    const array = new Float32Array(memory.buffer, next, count);
    next += bytesPerElement.f32 * count;
    return array;
  };
  const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);

  const running: Running[] = [];
  const finish = (one: Running): void => {
    one.group.wait(one.handle);
    const { output, kind } = one.request;
    const values = new Float32Array(output.buffer, output.byteOffset, output.byteLength / 4);
    values.forEach((value, at) => {
      tested += 1;
      if (!Object.is(value, expected(one, at)) && wrong.length < 3)
        wrong.push(`${kind} #${one.number}, element ${at} of ${values.length}: ${value}, not ${expected(one, at)}`);
    });
  };
  for (let number = 0; number < 50; number++) {
    const [kind, n, priority, awaited, inGroup] = [
      pick(kinds),
      pick(counts),
      Math.floor(4 * draw()),
      draw() < 0.5,
      draw() < 0.3,
    ];
    const group = inGroup ? reversed : communicator;
    const elements = kind === "barrier" ? 0 : n;
    const inputs = kind === "all-to-all" || kind === "reduce-scatter" ? worldSize * elements : elements;
    const outputs = kind === "all-to-all" || kind === "all-gather" ? worldSize * elements : elements;
    const input = region(inputs).map((_, at) => element(communicator.rank, number, at));
    const source = new Float32Array(memory.buffer, next - 4 * inputs, inputs);
    source.set(input);
    const target = inPlaceKinds.has(kind) && draw() < 0.5 ? source : region(outputs);
    const request: CollectiveRequest = {
      kind,
      dtype: "f32",
      input: bytesOf(source),
      output: bytesOf(target),
      priority,
      awaited,
      ...((kind === "broadcast" || kind === "reduce") && { root: worldSize - 1 - (number % 2) }),
    };
    const one = { number, request, group, handle: group.start(request), n: elements };
    if (awaited) finish(one);
    else running.push(one);
    // Each rank chooses independently which of its other collectives to wait for now.
    if (running.length > 0 && ownDraw() < 0.3) finish(running.splice(Math.floor(ownDraw() * running.length), 1)[0]!);
  }
  for (const one of running.toReversed()) finish(one);
  return { wrong, tested };
};
