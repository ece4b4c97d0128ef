import { hostname } from "node:os";
import { setTimeout } from "node:timers/promises";
import {
  ConfigError,
  describeError,
  exitCodeOfSignal,
  exitCodes,
  onInterrupt,
  type StopCause,
  writeStderr,
} from "@skein/cli/node";
import { isLoopback, type JoinOptions, readTlsIdentity } from "@skein/collectives/node";
import type { Job } from "@skein/job/node";
import { coordinatorFiles, coordinatorVariable, secretVariable } from "@skein/launch/node";
import type { Ending } from "../members/control-messages.ts";
import { Interruption } from "../processes/interruption.ts";
import { type MemberOptions, takePart } from "../members/take-part.ts";
import { openMpiWorld } from "../members/mpi-world.ts";
import { memberIdentity, openNetworkWorld } from "../members/network-world.ts";
import { processRunner } from "./process-runner.ts";
import type { RankRunner } from "./rank-runner.ts";
import { type Address, discoverRank } from "../members/rank-discovery.ts";
import { timeLimits } from "../processes/time-limits.ts";

/** Role of this process in a run whose processes were all started by a launcher with the same command. */
export interface LaunchedPosition {
  readonly job: Job;
  readonly process: number;
  readonly ranks: readonly number[];
  /** Address at which rank 0 hosts the rendezvous. Undefined under MPI if rank 0 sends the address through MPI. */
  readonly coordinator: Address | undefined;
  readonly secret: string | undefined;
}

/**
 * Returns the role of this process if a launcher started it as one of several processes; otherwise returns undefined.
 *
 * @throws ConfigError if the launcher's values do not match the job.
 */
export const launchedPosition = (job: Job, env: NodeJS.ProcessEnv): LaunchedPosition | undefined => {
  const discovered = discoverRank(env);
  if (discovered === undefined) return undefined;
  const { rank: index, worldSize: count, source, coordinator } = discovered;
  if (job.transport === "threads") {
    if (count === 1) return undefined;
    throw new ConfigError([
      `${source} started ${count} processes, but transport: threads runs all ranks in one process; add --transport tcp, tls or mpi`,
    ]);
  }
  const each = job.network.ranksPerProcess;
  if (count * each !== job.ranks)
    throw new ConfigError([
      `${source} started ${count} processes of ${each} ${each === 1 ? "rank" : "ranks"}, but the job has ${job.ranks} ranks; add --ranks ${count * each}, or start ${job.ranks / each} processes`,
    ]);
  if (job.transport === "tls" && job.network.certificates === undefined)
    throw new ConfigError([
      `${source} started ${count} processes, and transport: tls needs certificates for all of them; create them with skein-train certs init, and add --certificates <folder>`,
    ]);
  const secret = env[secretVariable];
  if (job.transport !== "mpi" && (coordinator === undefined || secret === undefined))
    throw new ConfigError([
      `${source} started ${count} processes, which need the address of the coordinator; set ${coordinatorVariable}=<host of rank 0>:<port> and the same ${secretVariable} for all processes, or use skein-train launch`,
    ]);
  return { job, process: index, ranks: Array.from({ length: each }, (_, i) => index * each + i), coordinator, secret };
};

/** Address and secret of the coordinator, sent by rank 0 through MPI if the environment does not contain them. */
interface CoordinatorContact {
  readonly address: Address;
  readonly secret: string;
}

const memberOptions = (position: LaunchedPosition, hosted: CoordinatorContact | undefined): MemberOptions => {
  const { job, ranks, coordinator, secret } = position;
  const { certificates, insecure } = job.network;
  const identity = certificates === undefined ? undefined : memberIdentity(certificates, ranks);
  const onOneMachine = coordinator === undefined || isLoopback(coordinator.host);
  const joinOptions = async ({
    address,
    secret: proof,
  }: CoordinatorContact): Promise<Pick<JoinOptions, "address" | "secret" | "security" | "insecure">> => ({
    address,
    secret: proof,
    insecure,
    ...(identity !== undefined && { security: identity }),
  });
  if (job.transport === "mpi") {
    return {
      job,
      ranks,
      openWorld: openMpiWorld,
      rendezvous: async (world) => {
        const text = await world.share!(hosted && JSON.stringify(hosted));
        return joinOptions(JSON.parse(text) as CoordinatorContact);
      },
    };
  }
  return {
    job,
    ranks,
    openWorld: openNetworkWorld({ secret: secret!, identity, onOneMachine }),
    rendezvous: () => joinOptions({ address: hosted?.address ?? coordinator!, secret: secret! }),
  };
};

/** Returns a runner for the process of rank 0. This process hosts the run and also runs ranks. */
export const launchedRunner = (position: LaunchedPosition): RankRunner => {
  const { job, ranks, coordinator, secret } = position;
  const { certificates, insecure } = job.network;
  const listen =
    coordinator === undefined
      ? insecure
        ? "0.0.0.0"
        : "127.0.0.1"
      : isLoopback(coordinator.host)
        ? coordinator.host
        : "0.0.0.0";
  return processRunner({
    ...(secret !== undefined && { secret }),
    rendezvous: {
      host: listen,
      ...(coordinator && { port: coordinator.port }),
      ranks,
      insecure,
      ...(certificates !== undefined && { security: readTlsIdentity(coordinatorFiles(certificates)) }),
    },
    start: ({ attempt: { prepared }, coordinator: address, secret: proof }) => {
      // Processes on other machines connect to this machine's host name; this process connects to the listening
      // address.
      const reachableHost = listen === "0.0.0.0" ? (coordinator?.host ?? hostname()) : address.host;
      const ended = new AbortController();
      const hosted = { address: { host: reachableHost, port: address.port }, secret: proof };
      const part = takePart({ ...memberOptions(position, hosted), prepared, signal: ended.signal });
      const lost = new Promise<{ ranks: readonly number[]; reason: string }>((resolve) => {
        part.catch((error: Error) => resolve({ ranks, reason: error.message }));
      });
      return Promise.resolve({
        lost,
        end: async (atOnce) => {
          const partEnded = part.then(
            () => undefined,
            () => undefined,
          );
          if (!atOnce) return partEnded;
          ended.abort();
          await Promise.race([partEnded, setTimeout(timeLimits.launchedProcess, undefined, { ref: false })]);
        },
      });
    },
  });
};

const codeOf = (ending: Ending, cause: StopCause | undefined): number => {
  if (ending === "stopped") return exitCodeOfSignal(cause ?? "SIGTERM");
  return ending === "finished" ? exitCodes.ok : exitCodes.failure;
};

/** Error codes of a run that was stopped before its ranks had started. */
const stoppedEarly: ReadonlySet<string> = new Set(["rendezvous-stopped", "interrupted"]);

/**
 * Runs this process's ranks in a run that is hosted by the process of rank 0.
 *
 * @param say prints a human-readable line about the processes that this process waits for.
 * @returns the exit code.
 */
export const runLaunchedProcess = async (position: LaunchedPosition, say: (line: string) => void): Promise<number> => {
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  const release = onInterrupt((signal) => {
    cause = signal;
    const { endsAtOnce } = interruption;
    interruption.request();
    if (endsAtOnce)
      void setTimeout(timeLimits.launchedProcess, undefined, { ref: false }).then(() =>
        process.exit(exitCodeOfSignal(signal)),
      );
  });
  try {
    return codeOf(
      await takePart({ ...memberOptions(position, undefined), interruption, controllerRanks: [0], onWaiting: say }),
      cause,
    );
  } catch (error) {
    const { code, message } = describeError(error);
    if (!stoppedEarly.has(code)) throw error;
    writeStderr(`${message}\n`);
    return codeOf("stopped", cause);
  } finally {
    release();
  }
};
