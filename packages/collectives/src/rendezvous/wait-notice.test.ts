import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WaitNotice } from "./wait-notice.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("reports a wait after a delay, then when it changes, occasionally in any case, and not after it was stopped", () => {
  const lines: string[] = [];
  let [state, looks] = ["rank 1", 0];
  const notice = new WaitNotice(
    { afterMilliseconds: 1500, everyMilliseconds: 10_000 },
    () => ({ state, line: `${state}, look ${++looks}` }),
    (line) => lines.push(line),
  );
  const linesAfter = (milliseconds: number): string[] => {
    vi.advanceTimersByTime(milliseconds);
    return lines.splice(0);
  };
  expect(linesAfter(1499)).toEqual([]);
  expect(linesAfter(1)).toEqual(["rank 1, look 1"]);
  expect(linesAfter(10_000)).toEqual([]);
  state = "rank 2";
  expect(linesAfter(9999)).toEqual([]);
  expect(linesAfter(1)).toEqual(["rank 2, look 3"]);
  expect(linesAfter(50_000)).toEqual([]);
  expect(linesAfter(10_000)).toEqual(["rank 2, look 9"]);
  notice.stop();
  state = "rank 3";
  expect(linesAfter(100_000)).toEqual([]);
});

test("does not report a short wait", () => {
  const lines: string[] = [];
  const notice = new WaitNotice(
    { afterMilliseconds: 1500, everyMilliseconds: 10_000 },
    () => ({ state: "", line: "" }),
    (line) => lines.push(line),
  );
  vi.advanceTimersByTime(1000);
  notice.stop();
  vi.advanceTimersByTime(60_000);
  expect(lines).toEqual([]);
});
