import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WaitNotice } from "./wait-notice.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("people hear what is waited for after a moment, then when it changes, now and then in any case, and no more once it is over", () => {
  const lines: string[] = [];
  let [state, looks] = ["rank 1", 0];
  const notice = new WaitNotice(
    { afterMilliseconds: 1500, everyMilliseconds: 10_000 },
    () => ({ state, line: `${state}, look ${++looks}` }),
    (line) => lines.push(line),
  );
  const heardAfter = (milliseconds: number): string[] => {
    vi.advanceTimersByTime(milliseconds);
    return lines.splice(0);
  };
  expect(heardAfter(1499)).toEqual([]);
  expect(heardAfter(1)).toEqual(["rank 1, look 1"]);
  expect(heardAfter(10_000)).toEqual([]);
  state = "rank 2";
  expect(heardAfter(9999)).toEqual([]);
  expect(heardAfter(1)).toEqual(["rank 2, look 3"]);
  expect(heardAfter(50_000)).toEqual([]);
  expect(heardAfter(10_000)).toEqual(["rank 2, look 9"]);
  notice.stop();
  state = "rank 3";
  expect(heardAfter(100_000)).toEqual([]);
});

test("what is over within a moment is not worth a line", () => {
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
