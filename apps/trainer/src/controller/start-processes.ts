import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describeError, type ErrorReport, isShortage } from "@skein/cli/node";
import type { TlsIdentity } from "@skein/collectives/node";
import { coordinatorVariable, secretVariable } from "@skein/launch/node";
import type { LostProcess, Processes, StartProcesses } from "./process-runner.ts";
import { memberCommand } from "../processes/stay-with-controller.ts";
import { timeLimits } from "../processes/time-limits.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

/**
 * Prefix of the output line in which a process reports a failure. Used if a launcher, not the controller, started the
 * process.
 */
export const reportPrefix = "skein-train member: ";

/** Command line of a process of a run. Appended to the command of a launcher. */
export const memberArguments: readonly string[] = [process.execPath, ...process.execArgv, main, memberCommand];

/**
 * Names of the environment variables that a process of a run receives. The variables may contain secrets, because other
 * users cannot read the environment of a process. Values that may exceed the maximum length of a variable (128 KiB on
 * Linux) are sent in the first IPC message, a `MemberStart`. mpirun has no IPC, so its processes read the job from a
 * file.
 */
export const memberVariables: Readonly<Record<"coordinator" | "secret" | "ranks" | "jobFile", string>> = {
  coordinator: coordinatorVariable,
  secret: secretVariable,
  ranks: "SKEIN_RANKS",
  jobFile: "SKEIN_JOB_FILE",
};

/** First IPC message to a process of a run. */
export interface MemberStart {
  /** Job as JSON. */
  readonly job: string;
  /** TLS identity of the process. Absent: connections use TCP without TLS. */
  readonly identity?: TlsIdentity | undefined;
}

/** Returns a description of how a process ended, from its exit code or signal. */
const endOf = (code: number | null, signal: NodeJS.Signals | null): string =>
  signal === null ? `its process ended with code ${code} before the run did` : `its process was ended by ${signal}`;

/**
 * Watches child processes until they exit.
 *
 * Uses `node:child_process`, like all code of this program that starts processes: execa 10.2 needs 80 ms of processor
 * time to load, a tenth of a tiny run, and adds 17 packages.
 *
 * @param endSignal signal that ends a child which has nothing left to report or save. Must not be a signal that
 * requests a stop, because ranks ignore stop signals.
 */
export const childProcesses = (
  children: readonly { readonly child: ChildProcess; readonly ranks: readonly number[] }[],
  endSignal: NodeJS.Signals,
): Processes => {
  const ended = children.map(
    ({ child }) =>
      new Promise<void>((resolve) => {
        child.once("close", () => resolve());
        // If there are no file handles for the child's channels, the child is not started, and `close` is not emitted.
        if (child.pid === undefined) child.once("error", () => resolve());
      }),
  );
  const lost = new Promise<LostProcess>((resolve) => {
    for (const { child, ranks } of children) {
      let report: ErrorReport | undefined;
      child.on("message", (message: ErrorReport) => (report = message));
      child.once("error", (error) => {
        const shortage = describeError(error);
        const reason = `its process could not be started: ${error.message}`;
        resolve({ ranks, reason, ...(isShortage(shortage) && { report: shortage }) });
      });
      child.once("close", (code, signal) => resolve({ ranks, reason: endOf(code, signal), ...(report && { report }) }));
    }
  });
  return {
    lost,
    end: async (atOnce) => {
      if (atOnce) for (const { child } of children) child.kill(endSignal);
      const timer = setTimeout(() => {
        for (const { child } of children) child.kill("SIGKILL");
      }, timeLimits.process);
      await Promise.all(ended);
      clearTimeout(timer);
    },
  };
};

/**
 * Returns a function that starts the processes of a run on this machine.
 *
 * @param identityOf returns the TLS identity of a process from its ranks. Each process receives only its own identity.
 */
export const startLocalProcesses =
  (identityOf?: (ranks: readonly number[]) => TlsIdentity): StartProcesses =>
  async ({ attempt, coordinator, secret }) => {
    const { job } = attempt.assignment;
    const { ranks, network } = job;
    const groups = Array.from({ length: ranks / network.ranksPerProcess }, (_, process) =>
      Array.from({ length: network.ranksPerProcess }, (_, i) => process * network.ranksPerProcess + i),
    );
    // Identities are read before any process is started, so that a fault in a file does not leave processes running.
    const identities = groups.map((group) => identityOf?.(group));
    const children: { readonly ranks: readonly number[]; readonly child: ChildProcess }[] = [];
    try {
      for (const group of groups)
        children.push({
          ranks: group,
          child: spawn(memberArguments[0]!, memberArguments.slice(1), {
            env: {
              ...process.env,
              [memberVariables.coordinator]: `${coordinator.host}:${coordinator.port}`,
              [memberVariables.secret]: secret,
              [memberVariables.ranks]: group.join(","),
            },
            stdio: ["ignore", "ignore", "inherit", "ipc"],
            // Ctrl-C in the terminal must reach only the launcher, which lets the ranks save first.
            detached: true,
          }),
        });
    } catch (error) {
      for (const { child } of children) child.kill("SIGKILL"); // the run needs all processes
      throw error;
    }
    const processes = childProcesses(children, "SIGKILL");
    const text = JSON.stringify(job);
    for (const [index, { child }] of children.entries()) {
      const start: MemberStart = { job: text, identity: identities[index] };
      // A process that was not started, or has already exited, is reported as lost.
      if (child.connected) child.send(start, () => undefined);
    }
    return processes;
  };
