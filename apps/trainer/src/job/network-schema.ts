import { silenceSecondsOf } from "@skein/collectives/node";
import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job, NetworkJob } from "./job.ts";
import { count, path } from "./ranges.ts";

/** The field `network` of a job. */
export const networkSchema: z.ZodType<NetworkJob> = z
  .strictObject({
    ranksPerProcess: count
      .default(1)
      .describe("Ranks that share a process, as threads, and so its memory. ranks is a multiple of it."),
    listen: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe(
        "Address that a process listens on for the data of others. Default: loopback on one machine, else every address.",
      ),
    certificates: path
      .optional()
      .describe("Folder of skein-train certs init. Default: a run on one machine makes its own."),
    insecure: z.boolean().default(false).describe("Allow to speak off this machine without TLS."),
    timeoutSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(60)
      .describe("How long a rank waits for another before the run fails."),
    heartbeatSeconds: z
      .number()
      .gt(0)
      .max(3600)
      .optional()
      .describe(
        "How often each process and link gives a sign of life. Default: 1, or a quarter of silenceSeconds where that is less.",
      ),
    silenceSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .optional()
      .describe(
        "After what silence a process or a link is lost; one that ends is noticed at once. Default: 15, or timeoutSeconds where that is less.",
      ),
    joinSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(600)
      .describe("How long all ranks may take to come: their hosts may have to wait for a queue, or to pull an image."),
    socketsPerPair: z
      .int()
      .min(1)
      .max(16)
      .optional()
      .describe("TCP connections for the data of two ranks, each way. Default: as measured."),
    links: path.optional().describe("File of skein-train links, by which algorithms are chosen."),
    codec: z
      .enum(["auto", "always", "never"])
      .default("auto")
      .describe("When to make data smaller without loss: where the link is slower than the codec, always, or never."),
    checksum: z
      .enum(["payload", "header"])
      .optional()
      .describe(
        "What the CRC-32C of data covers. Default: the payload too, but for TLS, which covers it, and for loopback without a proxy, which has no cable.",
      ),
    emulate: z
      .strictObject({
        bytesPerSecond: z.number().gt(0).describe("Bandwidth of each link, each way, or of each rank."),
        latencySeconds: z.number().min(0).max(3600).default(0),
        jitterSeconds: z.number().min(0).max(3600).default(0),
        sharesLine: z
          .boolean()
          .default(false)
          .describe(
            "One line out of each rank and one into it for all its links, as a network card is, not one for each link.",
          ),
      })
      .optional()
      .describe("Make links slower than they are, for studies; transport tcp or tls."),
  })
  .describe("How processes reach each other; without effect on what they compute.");

/** Rules about how processes reach each other. */
export const networkFaults = ({ ranks, transport, network }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const { ranksPerProcess, emulate, certificates, codec, timeoutSeconds, silenceSeconds, heartbeatSeconds } = network;
  if (ranks % ranksPerProcess !== 0)
    fault(
      ["network", "ranksPerProcess"],
      `${ranks} ranks do not divide among processes of ${ranksPerProcess}; use a divisor of ${ranks}`,
    );
  if (transport === "mpi" && ranksPerProcess !== 1)
    fault(
      ["network", "ranksPerProcess"],
      `transport: mpi has one rank per process, not ${ranksPerProcess}; leave it out`,
    );
  if (silenceSeconds !== undefined && silenceSeconds > timeoutSeconds)
    fault(
      ["network", "silenceSeconds"],
      `a silence of ${silenceSeconds} s is longer than a rank waits for another, ${timeoutSeconds} s; raise network.timeoutSeconds, or use at most ${timeoutSeconds}`,
    );
  const silence = silenceSecondsOf(network);
  if (heartbeatSeconds !== undefined && 2 * heartbeatSeconds > silence)
    fault(
      ["network", "heartbeatSeconds"],
      `one late sign of life every ${heartbeatSeconds} s would already be a silence of ${silence} s; use at most ${silence / 2}, or raise network.silenceSeconds`,
    );
  if (emulate !== undefined && transport !== "tcp" && transport !== "tls")
    fault(["network", "emulate"], `transport: ${transport} has no links to emulate; use transport: tcp`);
  if (certificates !== undefined && transport !== "tls")
    fault(
      ["network", "certificates"],
      `transport: ${transport} uses no certificates; leave it out or use transport: tls`,
    );
  if (codec === "always" && transport !== "tcp" && transport !== "tls")
    fault(["network", "codec"], `transport: ${transport} has no codec; leave it out or use transport: tcp`);
  return faults;
};
