import { z } from "zod";
import { count, path } from "./ranges.ts";

/** Schema of the field `network` of a job. */
export const networkSchema = z
  .strictObject({
    ranksPerProcess: count
      .default(1)
      .describe(
        "Number of ranks per process; ranks of a process are threads and share its memory. ranks is a multiple of it.",
      ),
    listen: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe(
        "Address on which a process accepts data connections. Default: loopback on one machine, otherwise all addresses.",
      ),
    certificates: path
      .optional()
      .describe(
        "Folder created by skein-train certs init. Default: a run on one machine creates its own certificates.",
      ),
    insecure: z.boolean().default(false).describe("Allow connections to other machines without TLS."),
    timeoutSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(60)
      .describe("Time in seconds that a rank waits for another before the run fails."),
    heartbeatSeconds: z
      .number()
      .gt(0)
      .max(3600)
      .optional()
      .describe(
        "Interval in seconds between heartbeats of each process and link. Default: 1, or silenceSeconds / 4 if that is less.",
      ),
    silenceSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .optional()
      .describe(
        "Time in seconds without a sign of life after which a process or link counts as lost; an exit is noticed at once. Default: 15, or timeoutSeconds if that is less.",
      ),
    joinSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(600)
      .describe("Time limit in seconds for all ranks to join; their hosts may wait in a queue, or pull an image."),
    socketsPerPair: z
      .int()
      .min(1)
      .max(16)
      .optional()
      .describe(
        "Number of TCP connections per pair of ranks for data, in each direction. Default: chosen by measurement.",
      ),
    links: path.optional().describe("Link measurements by skein-train links, used to choose algorithms."),
    codec: z
      .enum(["auto", "always", "never"])
      .default("auto")
      .describe("When to use the lossless codec. auto: if the link is slower than the codec."),
    checksum: z
      .enum(["payload", "header"])
      .optional()
      .describe(
        "Data covered by the CRC-32C checksum. Default: header and payload; header only over TLS, which has its own check, and over loopback without a proxy.",
      ),
    emulate: z
      .strictObject({
        bytesPerSecond: z
          .number()
          .gt(0)
          .describe("Bandwidth per direction of each link, or of each rank with sharesLine."),
        latencySeconds: z.number().min(0).max(3600).default(0).describe("Latency of each message, in seconds."),
        jitterSeconds: z
          .number()
          .min(0)
          .max(3600)
          .default(0)
          .describe("Maximum random delay that is added to the latency, in seconds."),
        sharesLine: z
          .boolean()
          .default(false)
          .describe(
            "All links of a rank share one line in each direction, as with a network card, instead of a line per link.",
          ),
      })
      .optional()
      .describe("Slow links down, for studies; for transport tcp or tls."),
  })
  .describe("Network between processes. These options do not change the results.");
