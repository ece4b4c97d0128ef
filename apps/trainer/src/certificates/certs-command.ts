import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { defaultDays, writeCertificates } from "./certificate-folder.ts";
import { ConfigError, exitCodes } from "../errors.ts";

interface CertsOptions {
  readonly ranks: string;
  readonly ranksPerProcess: string;
  readonly hosts?: string;
  readonly days: string;
  readonly output: string;
  readonly json?: boolean;
}

const mostRanks = 4096;
const mostDays = 3650;

const wholeNumber = (option: string, text: string, most: number): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > most)
    throw new ConfigError([`${option} ${text}: must be a whole number from 1 to ${most}`]);
  return value;
};

const initCommand = async (options: CertsOptions): Promise<void> => {
  const ranks = wholeNumber("--ranks", options.ranks, mostRanks);
  const ranksPerProcess = wholeNumber("--ranks-per-process", options.ranksPerProcess, ranks);
  if (ranks % ranksPerProcess !== 0)
    throw new ConfigError([`--ranks-per-process ${ranksPerProcess}: does not divide ${ranks} ranks; every process holds as many`]);
  const days = wholeNumber("--days", options.days, mostDays);
  const hosts = (options.hosts ?? "")
    .split(",")
    .map((host) => host.trim())
    .filter((host) => host !== "");
  const folder = options.output;
  const written = await writeCertificates({ folder, ranks, ranksPerProcess, hosts, days });
  const validTo = new X509Certificate(readFileSync(written[0]!)).validToDate.toISOString();
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify({ folder, files: written, validTo })}\n`);
    return;
  }
  const lines = [
    ...written,
    "",
    `Certificates of ${ranks} ranks and the coordinator, valid until ${validTo.slice(0, 10)}, ${hosts.length === 0 ? "on any host" : `on ${hosts.join(", ")}`}.`,
    "Each host needs authority.pem and the files of its ranks, and that of rank 0 the coordinator's too. Keep *.key.pem to yourself.",
    "The authority's key was not kept: for more ranks make a new folder.",
    `Use them with: skein-train run job.yaml --transport tls --certificates ${folder}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
};

/** Add `certs init` to the command line. `finish` takes the exit code. */
export const addCertsCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("certs")
    .description("make certificates for transport: tls")
    .command("init")
    .description("make an authority, and certificates for the coordinator and every rank")
    .requiredOption("--ranks <count>", "ranks of the job")
    .option("--ranks-per-process <count>", "ranks that are threads of one process", "1")
    .option("--hosts <names>", "names or addresses of the hosts, with commas between; default: valid on any host")
    .option("--days <count>", "how long they are valid", String(defaultDays))
    .option("--output <folder>", "where to write them", "certs")
    .addHelpText("after", "\nExample:\n  skein-train certs init --ranks 4 --hosts node-1,node-2 --output certs")
    .action(async (_: unknown, command: Command) => {
      await initCommand(command.optsWithGlobals<CertsOptions>());
      finish(exitCodes.ok);
    });
};
