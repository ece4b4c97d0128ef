import { type Context, createContext, Script } from "node:vm";

const call = new Script("work()");
let context: Context | undefined;

const isTooLate = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException | undefined)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";

/**
 * Runs a function on this thread with a timeout that also interrupts regular expressions. After a timeout the function
 * is run a second time, because the process may have been suspended. The function must be safe to run twice. Cost: 0.1
 * ms for the timer, which is a thread of Node.
 *
 * @returns undefined if the function timed out twice.
 */
export const withinTime = <Result>(
  milliseconds: number,
  work: () => Result,
): { readonly result: Result } | undefined => {
  context ??= createContext({});
  for (let turn = 0; turn < 2; turn++) {
    context["work"] = work;
    try {
      return { result: call.runInContext(context, { timeout: Math.ceil(milliseconds) }) as Result };
    } catch (error) {
      if (!isTooLate(error)) throw error;
    } finally {
      context["work"] = undefined;
    }
  }
  return undefined;
};
