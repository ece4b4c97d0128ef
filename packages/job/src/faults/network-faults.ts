import { silenceSecondsOf } from "@skein/collectives/node";
import type { Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/** Returns the problems found in a job's network options. */
export const networkFaults = ({ ranks, transport, network }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const { ranksPerProcess, emulate, certificates, codec, timeoutSeconds, silenceSeconds, heartbeatSeconds } = network;
  if (ranks % ranksPerProcess !== 0)
    fault(
      ["network", "ranksPerProcess"],
      `${ranks} ranks are not divisible by ${ranksPerProcess} ranks per process; use a divisor of ${ranks}`,
    );
  if (transport === "mpi" && ranksPerProcess !== 1)
    fault(
      ["network", "ranksPerProcess"],
      `transport: mpi has one rank per process, not ${ranksPerProcess}; leave ranksPerProcess out`,
    );
  if (silenceSeconds !== undefined && silenceSeconds > timeoutSeconds)
    fault(
      ["network", "silenceSeconds"],
      `a silence of ${silenceSeconds} s is longer than network.timeoutSeconds, ${timeoutSeconds} s; raise network.timeoutSeconds, or use at most ${timeoutSeconds}`,
    );
  const silence = silenceSecondsOf(network);
  if (heartbeatSeconds !== undefined && 2 * heartbeatSeconds > silence)
    fault(
      ["network", "heartbeatSeconds"],
      `with a heartbeat every ${heartbeatSeconds} s, one late heartbeat would already exceed a silence of ${silence} s; use at most ${silence / 2}, or raise network.silenceSeconds`,
    );
  if (emulate !== undefined && transport !== "tcp" && transport !== "tls")
    fault(["network", "emulate"], `transport: ${transport} has no links to emulate; use transport: tcp`);
  if (certificates !== undefined && transport !== "tls")
    fault(
      ["network", "certificates"],
      `transport: ${transport} uses no certificates; leave certificates out, or use transport: tls`,
    );
  if (codec === "always" && transport !== "tcp" && transport !== "tls")
    fault(["network", "codec"], `transport: ${transport} has no codec; leave codec out, or use transport: tcp`);
  return faults;
};
