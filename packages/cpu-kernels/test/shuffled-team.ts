import type { Call, Team, TeamFunctions } from "../src/team/team.ts";

/**
 * A team of one thread that cuts all that can be cut, however small, and runs a call of each part in turn, the last
 * part first: what depends on the order of parts, or on scratch memory that another part writes as well, is found.
 */
export const shuffledTeam = (threads: number, functions: TeamFunctions): Team => ({
  threads,
  indexOf: (name) => functions.indexOf(name),
  partsOf: (_, most) => Math.max(1, Math.min(threads, most)),
  run: (parts, write: (part: number, call: Call) => void) => {
    const calls = Array.from({ length: parts }, (_, part) => {
      const ofPart: Parameters<Call>[] = [];
      write(part, (...args) => void ofPart.push(args));
      return ofPart;
    });
    for (let turn = 0; calls.some(({ length }) => length > turn); turn++)
      for (const ofPart of calls.toReversed()) if (turn < ofPart.length) functions.call(...ofPart[turn]!);
  },
});
