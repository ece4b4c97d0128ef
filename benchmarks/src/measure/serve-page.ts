import { problems } from "../problems/table.ts";
import { withValues } from "../problems/values.ts";
import { answering, type Contestant } from "./contestant.ts";

/**
 * Lets the harness send requests to this page by `askContestant(request)`. An implementation that cannot start answers
 * every request with the reason.
 */
export const serveOnPage = async (open: () => Promise<Contestant>): Promise<void> => {
  const global = globalThis as { askContestant?: unknown };
  try {
    global.askContestant = answering(await open(), (name) => withValues(problems[name]!));
  } catch (error) {
    global.askContestant = async () => ({ ok: false, error: error instanceof Error ? error.message : String(error) });
  }
};
