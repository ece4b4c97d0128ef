import {
  ConfigError,
  describeError,
  exitCodeOf,
  exitCodes,
  keepExitCode,
  RunError,
  writeStderr,
} from "@skein/cli/node";
import { type Job, parseJob } from "@skein/job/node";
import type { Command } from "commander";
import { readJobFile } from "../job-file/load-job.ts";
import type { Ending } from "../members/control-messages.ts";
import { requireSameModules } from "../modules/settle-modules.ts";
import { leaveController, memberCommand } from "../processes/stay-with-controller.ts";
import { takePart } from "../members/take-part.ts";
import { openMpiWorld } from "../members/mpi-world.ts";
import { openNetworkWorld } from "../members/network-world.ts";
import { discoverRank, parseAddress } from "../members/rank-discovery.ts";
import { type MemberStart, memberVariables, reportPrefix } from "../controller/start-processes.ts";

const variable = (name: string): string => {
  const value = process.env[name];
  if (value === undefined)
    throw new ConfigError([`${name} is not set; skein-train member is started by a run itself, use skein-train run`]);
  return value;
};

/** Returns the ranks of this process, which the controller or the launcher of the process has assigned. */
const ranksOf = (job: Job): number[] => {
  const given = process.env[memberVariables.ranks];
  if (given !== undefined) return given.split(",").map(Number);
  const discovered = discoverRank(process.env);
  if (discovered === undefined || discovered.worldSize !== job.ranks)
    throw new ConfigError([
      `the launcher started ${discovered?.worldSize ?? "no"} ranks, but the job has ${job.ranks}; start as many processes as there are ranks`,
    ]);
  return [discovered.rank];
};

/** Receives the start data from the parent process: as the first IPC message or, under mpirun, from a file. */
const memberStart = async (): Promise<MemberStart> => {
  if (process.send === undefined) return { job: readJobFile(variable(memberVariables.jobFile)) };
  return new Promise((resolve, reject) => {
    process.once("message", resolve);
    process.once("disconnect", () =>
      reject(new RunError("process-lost", "the controller of the run ended before it had sent the job")),
    );
  });
};

const runMember = async (): Promise<Ending> => {
  const { job: text, identity } = await memberStart();
  const job = parseJob(text, "the job of the run");
  await requireSameModules(job);
  const ranks = ranksOf(job);
  const secret = variable(memberVariables.secret);
  return takePart({
    job,
    ranks,
    openWorld: job.transport === "mpi" ? openMpiWorld : openNetworkWorld({ secret, identity, onOneMachine: true }),
    rendezvous: () =>
      Promise.resolve({
        address: parseAddress(memberVariables.coordinator, variable(memberVariables.coordinator)),
        secret,
        insecure: job.network.insecure,
        ...(identity !== undefined && { security: identity }),
      }),
  });
};

/**
 * Adds the command `skein-train member`, which runs one process of a run. Another process starts the command, and
 * reports its errors to the user. The command is hidden, because users do not call it.
 */
export const addMemberCommand = (program: Command, finish: (code: number) => void): void => {
  program.command(memberCommand, { hidden: true }).action(async () => {
    variable(memberVariables.coordinator); // throws if a user typed this command
    keepExitCode();
    try {
      finish((await runMember()) === "failed" ? exitCodes.failure : exitCodes.ok);
    } catch (error) {
      const report = describeError(error);
      if (process.send === undefined) writeStderr(`${reportPrefix}${JSON.stringify(report)}\n`);
      // the launcher may have just exited
      else if (process.connected) process.send(report, undefined, undefined, () => undefined);
      finish(exitCodeOf(report));
    } finally {
      leaveController();
    }
  });
};
