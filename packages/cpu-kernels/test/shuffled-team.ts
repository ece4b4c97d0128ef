import type { Call, Team, TeamFunctions } from "../src/team/team.ts";

/**
 * Creates a team of one thread that splits all kernels that can be split, even small kernels, and alternates between
 * the parts call by call, last part first. Detects results that depend on the order of parts, or on scratch memory that
 * two parts write.
 */
export const shuffledTeam = (threads: number, functions: TeamFunctions): Team => ({
  threads,
  indexOf: (name) => functions.indexOf(name),
  partsOf: (_, most) => Math.max(1, Math.min(threads, most)),
  run: (parts, write: (part: number, call: Call) => void) => {
    const calls = Array.from({ length: parts }, (_, part) => {
      const callsOfPart: Parameters<Call>[] = [];
      write(part, (...args) => void callsOfPart.push(args));
      return callsOfPart;
    });
    for (let turn = 0; calls.some(({ length }) => length > turn); turn++)
      for (const callsOfPart of calls.toReversed())
        if (turn < callsOfPart.length) functions.call(...callsOfPart[turn]!);
  },
});
