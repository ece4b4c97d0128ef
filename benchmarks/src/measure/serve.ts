import { createInterface } from "node:readline";
import { readProblem } from "../problems/problem-files.ts";
import { answering, type Contestant } from "./contestant.ts";

/** Answers the harness line by line until standard input closes. */
export const serve = async (contestant: Contestant): Promise<void> => {
  const answer = answering(contestant, (_, folder) => readProblem(folder));
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`\n@${JSON.stringify(await answer(JSON.parse(line)))}\n`);
  process.exit(0);
};
