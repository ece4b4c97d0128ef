import { expect, test } from "vitest";
import { Arena, createSharedMemory } from "../arena.ts";
import { HelperError } from "../errors.ts";
import { compileWasm, instantiateWasm } from "../wasm-build.ts";
import { ParallelRegion } from "./parallel-region.ts";
import { type HelperSetup, type HelperThread, startHelper } from "./start-helper.ts";
import { TeamFunctions } from "./team.ts";
import { ThreadTeam } from "./thread-team.ts";

const module = await compileWasm("relaxed");

type Started = Pick<HelperSetup, "shared" | "spins">;

/** Opens a team of two threads. Returns the team and the words shared with the helper. */
const openTwo = async (
  options: { spins?: number; milliseconds?: number; start?: (setup: HelperSetup) => HelperThread } = {},
) => {
  const { spins = 1000, milliseconds = 10_000, start = startHelper } = options;
  const memory = createSharedMemory();
  const arena = new Arena(memory);
  const functions = new TeamFunctions(instantiateWasm(module, memory));
  let shared = new SharedArrayBuffer(0);
  const helpers: HelperThread[] = [];
  const team = await ThreadTeam.open({
    threads: 2,
    arena,
    functions,
    wait: { spins, canBlock: true, milliseconds },
    start: (setup: Started) => {
      ({ shared } = setup);
      helpers.push(start({ ...setup, module, memory, product: undefined }));
      return helpers[0]!;
    },
  });
  const fill = team.indexOf("fill32");
  const address = arena.allocate(4096);
  const words = (): number[] => [...new Uint32Array(memory.buffer, address, 2)];
  const fillBoth = (value: number): void => team.run(2, (part, call) => call(fill, address + 4 * part, value, 1));
  return {
    team,
    arena,
    functions,
    memory,
    fillBoth,
    words,
    region: () => new ParallelRegion(shared, memory, functions),
    helper: helpers[0]!,
  };
};

test("runs each part once, whether helpers sleep or poll", async () => {
  for (const spins of [0, 100_000]) {
    const { team, fillBoth, words } = await openTwo({ spins });
    for (let value = 1; value <= 500; value++) {
      fillBoth(value);
      expect(words()).toEqual([value, value]);
    }
    await team.close();
  }
});

test("runs the calls of a part in order, for a record of any length", async () => {
  const { team, arena, memory } = await openTwo();
  const fill = team.indexOf("fill32");
  const address = arena.allocate(4096);
  team.run(2, (part, call) => {
    for (let i = 0; i < 3000; i++) call(fill, address + 256 * part, i, 1);
  });
  expect([0, 64].map((word) => new Uint32Array(memory.buffer, address, 65)[word])).toEqual([2999, 2999]);
  await team.close();
});

test("fails the run with one line if a kernel traps in any thread, and stays usable", async () => {
  const { team, fillBoth, words, region } = await openTwo();
  const copy = team.indexOf("copyDense");
  const beyond = 2 ** 31;
  const trap = (in_: number) => () =>
    team.run(2, (part, call) => {
      // The caller's part runs until the helper has taken the other part.
      if (part === in_) call(copy, beyond, 64, beyond - 1);
      else if (part === 0) while (region().hasLeft()) continue;
    });
  expect(trap(1)).toThrow(new HelperError("a kernel failed in a helper thread: memory access out of bounds"));
  expect(trap(0)).toThrow(/memory access out of bounds/);
  fillBoth(7);
  expect(words()).toEqual([7, 7]);
  await team.close();
});

test("fails the run and all later runs if a helper takes a part and does not answer", async () => {
  const { team, fillBoth, region } = await openTwo({
    milliseconds: 50,
    // A helper that never polls for work.
    start: () => ({ ready: Promise.resolve(), ended: new Promise(() => {}), stop: async () => {} }),
  });
  const silent = () => team.run(2, (part) => void (part === 0 && region().skip()));
  expect(silent).toThrow("a helper thread of the kernels has not answered for 0.05 s");
  expect(() => fillBoth(1)).toThrow(HelperError);
});

test("fails the next run if a helper has ended or the team was closed", async () => {
  const { team, fillBoth, helper } = await openTwo();
  await helper.stop();
  await helper.ended;
  expect(() => fillBoth(1)).toThrow(/a helper thread of the kernels has ended: it ended with code 1/);
  await team.close();
  const closed = await openTwo();
  await closed.team.close();
  expect(() => closed.fillBoth(1)).toThrow(/the backend was closed/);
});

test("reports a helper that cannot be started when the team is opened", async () => {
  await expect(
    openTwo({ start: (setup) => startHelper({ ...setup, product: { module: "file:///nowhere.mjs", data: 0 } }) }),
  ).rejects.toThrow(/a helper thread of the kernels did not start: .*nowhere/);
});
