import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { onInterrupt, type StopCause } from "./interrupts.ts";

let exits: number[];
let heard: StopCause[];
let notes: string[];
let release: () => void;
beforeEach(() => {
  vi.useFakeTimers();
  [exits, heard, notes] = [[], [], []];
  vi.spyOn(process, "exit").mockImplementation((code) => void exits.push(Number(code)) as never);
  release = onInterrupt(
    (cause) => heard.push(cause),
    (line) => notes.push(line),
  );
});
afterEach(() => {
  release();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const codes = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 } as const;

test.each(Object.keys(codes) as StopCause[])(
  "a second %s ends the process at once, once that was reported",
  (signal) => {
    process.emit(signal, signal);
    expect([heard, exits, notes]).toEqual([[signal], [], []]);
    process.emit(signal, signal); // timeout(1) and closed terminals also send signals twice
    vi.advanceTimersByTime(1000);
    expect([heard, exits, notes]).toEqual([[signal], [], ["once more to exit at once"]]);
    process.emit(signal, signal);
    expect([heard, exits]).toEqual([[signal], [codes[signal]]]);
  },
);

test("counts SIGUSR2 as SIGTERM, and after another signal as the signal of its launcher", () => {
  process.emit("SIGHUP", "SIGHUP");
  vi.advanceTimersByTime(1000);
  process.emit("SIGUSR2", "SIGUSR2");
  expect([heard, exits]).toEqual([["SIGHUP"], []]);
  release();
  release = onInterrupt((cause) => heard.push(cause));
  process.emit("SIGUSR2", "SIGUSR2");
  vi.advanceTimersByTime(1000);
  process.emit("SIGUSR2", "SIGUSR2");
  expect([heard, exits]).toEqual([["SIGHUP", "SIGTERM"], [143]]);
});
