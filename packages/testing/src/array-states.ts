import {
  add,
  allReduce,
  type Backend,
  type Communicator,
  type DeviceArray,
  jit,
  multiply,
  NdArray,
  reshape,
  type Tensor,
  trace,
  transpose,
} from "@skein/tensor-core";
import type { CollectiveRequest } from "@skein/tensor-core/backend";

/** A backend that reports the number of bytes allocated for arrays and workspaces. */
export interface MeasuredBackend extends Backend {
  readonly held: () => number;
}

/**
 * Communicator for two ranks. Only rank 0 exists. Rank 1 is assumed to contribute the same values as rank 0, so each
 * sum is twice the input. Results are written only after `gate` resolves.
 */
class LateGroup implements Communicator {
  readonly rank = 0;
  readonly worldSize = 2;
  readonly members = [0, 1] as const;
  readonly requests: CollectiveRequest[] = [];
  readonly gate: PromiseWithResolvers<void> = Promise.withResolvers<void>();

  constructor() {
    // The gate may be rejected before anything waits for it.
    this.gate.promise.catch(() => undefined);
  }

  start(request: CollectiveRequest): { id: number } {
    return { id: this.requests.push(request) - 1 };
  }

  async wait({ id }: { readonly id: number }): Promise<void> {
    await this.gate.promise;
    const { input, output } = this.requests[id]!;
    const floats = new Float32Array(input.slice().buffer).map((value) => 2 * value);
    output.set(new Uint8Array(floats.buffer));
  }

  /** Fills the outputs of all requests with NaN, like a late write by a slow peer. */
  writeLate(): void {
    for (const { output } of this.requests) output.fill(0xff);
  }

  bytesSent(): number {
    return 0;
  }

  exchangeTexts(text: string): readonly string[] {
    return [text, text];
  }

  split(): never {
    throw new Error("these ranks split no group");
  }
}

/** Checks that two values are equal. `what` describes the value in the error. */
export type Expect = (actual: unknown, wanted: unknown, what: string) => void;

const size = 1000;
const filled = (value: number): NdArray => NdArray.from(new Float32Array(size).fill(value));
const all = (value: number): number[] => new Array<number>(size).fill(value);

const messageOf = async (call: Promise<unknown> | (() => unknown)): Promise<string> => {
  try {
    await (typeof call === "function" ? call() : call);
    return "no error";
  } catch (error) {
    return (error as Error).message;
  }
};

/** Waits until a run has started a collective. */
const untilAsked = async (group: LateGroup): Promise<void> => {
  while (group.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
};

const mesh = { data: 2 };

/**
 * Test scenarios for arrays that are freed, donated or read during runs. Every backend runs the scenarios. Each
 * scenario frees all memory that it allocates, unless stated otherwise.
 */
export const arrayStateScenarios: {
  readonly [title: string]: (backend: MeasuredBackend, expect: Expect) => Promise<void>;
} = {
  "a release waits for the running call, whose results are complete": async (backend, expect) => {
    const before = backend.held();
    const group = new LateGroup();
    // The sum is in the workspace, because transposes are not done in place.
    const f = jit((x: Tensor) => transpose(reshape(allReduce(multiply(x, 2), "data"), [10, size / 10])), backend, {
      communicators: { data: group },
    });
    const pending = f(filled(1));
    await untilAsked(group);
    f.release();
    const others = [5, 6, 7, 8].map((value) => backend.upload(filled(value)));
    group.gate.resolve();
    const y = await pending;
    expect((await backend.download(y)).toNumbers(), all(4), "the result");
    expect((await backend.download(others[3]!)).toNumbers(), all(8), "an array that was uploaded meanwhile");
    for (const array of [y, ...others]) backend.free(array);
    expect(backend.held(), before, "bytes held");
    expect(/no error|released/.test(await messageOf(f(filled(1)))), true, "a later call compiles again or is rejected");
  },

  "an array that is freed while a run reads it stays until then": async (backend, expect) => {
    const before = backend.held();
    const group = new LateGroup();
    const f = jit((x: Tensor) => add(allReduce(multiply(x, 2), "data"), x), backend, {
      communicators: { data: group },
    });
    const x = backend.upload(filled(1));
    const pending = f(x);
    await untilAsked(group);
    backend.free(x);
    const others = [5, 6].map((value) => backend.upload(filled(value)));
    expect(/was freed/.test(await messageOf(backend.download(x))), true, "the freed array is rejected");
    group.gate.resolve();
    const y = await pending;
    expect((await backend.download(y)).toNumbers(), all(5), "the result");
    for (const array of [y, ...others]) backend.free(array);
    f.release();
    expect(backend.held(), before, "bytes held");
  },

  "a donated array is rejected by all other calls until its call has ended": async (backend, expect) => {
    const group = new LateGroup();
    const step = jit((x: Tensor) => add(allReduce(multiply(x, 2), "data"), x), backend, {
      donate: [0],
      communicators: { data: group },
    });
    const [taker, reader] = [
      jit((x: Tensor) => add(x, 1), backend, { donate: [0] }),
      jit((x: Tensor) => add(x, 1), backend),
    ];
    const x = backend.upload(filled(1));
    const pending = step(x);
    await untilAsked(group);
    for (const call of [taker(x), reader(x), backend.download(x)])
      expect(/given away \(donated\) to a call that has not ended/.test(await messageOf(call)), true, "a second use");
    backend.free(x);
    group.gate.resolve();
    const y = await pending;
    expect((await backend.download(y)).toNumbers(), all(5), "the result");
    backend.free(x);
    expect((await backend.download(y)).toNumbers(), all(5), "the result after its source was freed");
    expect(/donated|freed/.test(await messageOf(reader(x))), true, "the donated array");
    backend.free(y);
    for (const f of [step, taker, reader]) f.release();
  },

  "an array that a run reads cannot be donated": async (backend, expect) => {
    const group = new LateGroup();
    const read = jit((x: Tensor) => add(allReduce(multiply(x, 2), "data"), x), backend, {
      communicators: { data: group },
    });
    const taker = jit((x: Tensor) => add(x, 1), backend, { donate: [0] });
    const x = backend.upload(filled(1));
    const pending = read(x);
    await untilAsked(group);
    expect(/still reads it/.test(await messageOf(taker(x))), true, "donating an array that is read");
    expect((await backend.download(x)).toNumbers(), all(1), "the array that is read");
    group.gate.resolve();
    backend.free(await pending);
    const z = await taker(x);
    expect((await backend.download(z)).toNumbers(), all(2), "donated afterwards");
    backend.free(z);
    for (const f of [read, taker]) f.release();
  },

  "a run that fails with pending collectives loses its donated arrays, and memory that peers may write is not reused":
    async (backend, expect) => {
      const spec = { dtype: "f32", shape: [size] } as unknown as Tensor;
      const { graph } = trace(
        (x: Tensor, w: Tensor) => {
          const [a, b, c] = [allReduce(multiply(x, 2), "data"), allReduce(add(x, w), "data"), allReduce(w, "data")];
          // Sum a is stored in the workspace, sum b in an output. The input of sum c is an argument.
          return [transpose(reshape(a, [10, size / 10])), b, add(multiply(b, c), x)];
        },
        [spec, spec],
        { mesh },
      );
      const executable = backend.compile(graph, { donate: [0] });
      const [x, w] = [backend.upload(filled(1)), backend.upload(filled(3))];
      const broken = new LateGroup();
      const pending = messageOf(executable.run([x, w], { data: broken }));
      await untilAsked(broken);
      broken.gate.reject(new Error("rank 1 is gone"));
      expect(await pending, "rank 1 is gone", "the failed run");
      expect(
        /given away \(donated\) to a call that failed/.test(await messageOf(backend.download(x))),
        true,
        "the donated array",
      );
      expect((await backend.download(w)).toNumbers(), all(3), "the array that was only read");
      backend.free(x);
      backend.free(w); // may still be read by a peer
      const sent = broken.requests.map(({ input }) => input.slice());
      const others = Array.from({ length: 12 }, (_, i) => backend.upload(filled(i)));
      const good = new LateGroup();
      const again = executable.run([others[1]!, others[3]!], { data: good });
      await untilAsked(good);
      const stillThere = broken.requests.map(({ input }) => input.slice());
      expect(stillThere, sent, "what peers may still read");
      broken.writeLate();
      good.gate.resolve();
      const results = await again;
      broken.writeLate();
      const values = await Promise.all(results.map(async (array) => (await backend.download(array)).toNumbers()));
      expect(values, [all(4), all(8), all(49)], "the next run");
      for (const [i, array] of others.entries())
        if (i !== 1) expect((await backend.download(array)).toNumbers(), all(i), `array ${i}`);
      for (const array of [...results, ...others]) backend.free(array as DeviceArray);
      executable.release();
    },

  "a run that fails before it starts changes nothing": async (backend, expect) => {
    const before = backend.held();
    const f = jit((x: Tensor, y: Tensor) => add(x, y), backend, { donate: [0] });
    const [x, y] = [backend.upload(filled(1)), backend.upload(filled(2))];
    backend.free(y);
    expect(/was freed/.test(await messageOf(f(x, y))), true, "a freed argument");
    expect((await backend.download(x)).toNumbers(), all(1), "the donated argument");
    expect(/was freed/.test(await messageOf(f(filled(1), y))), true, "a freed argument next to a host array");
    backend.free(x);
    f.release();
    expect(backend.held(), before, "bytes held");
  },
};
