import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { asTyped, ConfigError, exitCodes, writeStdout } from "@skein/cli/node";
import type { Command } from "commander";
import { defaultAuthorityDays, defaultDays, writeCertificates } from "./certificate-folder.ts";
import { renewCertificates } from "./renew-certificates.ts";
import { revokeCertificates } from "./revoke-certificates.ts";

interface InitOptions {
  readonly ranks: string;
  readonly ranksPerProcess: string;
  readonly hosts?: string;
  readonly days: string;
  readonly keepAuthority?: string;
  readonly authorityDays?: string;
  readonly output: string;
  readonly json?: boolean;
}

/** Command-line options that select certificates and their authority. */
interface ChoiceOptions {
  readonly authority: string;
  readonly certificates: string;
  readonly rank?: string;
  readonly coordinator?: boolean;
  readonly json?: boolean;
}

const maxRanks = 4096;
const maxDays = 3650;

const wholeNumber = (option: string, text: string, most: number): number => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > most)
    throw new ConfigError([`${option} ${text}: must be a whole number from 1 to ${most}`]);
  return value;
};

/** Parses a list of ranks, such as `3` or `0,4-7`. */
const rankList = (text: string | undefined): number[] | undefined =>
  text?.split(",").flatMap((part) => {
    const match = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part.trim());
    const [first, last] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
    if (match === null || first > last || last >= maxRanks)
      throw new ConfigError([`--rank ${text}: must be ranks such as 3 or 0,4-7, each below ${maxRanks}`]);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });

const print = (json: boolean | undefined, facts: object, lines: readonly string[]): void => {
  writeStdout(`${json === true ? JSON.stringify(facts) : asTyped(lines.join("\n"))}\n`);
};

const initCommand = async (options: InitOptions): Promise<void> => {
  const ranks = wholeNumber("--ranks", options.ranks, maxRanks);
  const ranksPerProcess = wholeNumber("--ranks-per-process", options.ranksPerProcess, ranks);
  if (ranks % ranksPerProcess !== 0)
    throw new ConfigError([
      `--ranks-per-process ${ranksPerProcess}: does not divide ${ranks} ranks; all processes have the same number of ranks`,
    ]);
  const days = wholeNumber("--days", options.days, maxDays);
  const { output: folder, keepAuthority } = options;
  if (options.authorityDays !== undefined && keepAuthority === undefined)
    throw new ConfigError([
      `--authority-days ${options.authorityDays}: has an effect only if the authority is kept; add --keep-authority <file>`,
    ]);
  const authorityDays =
    keepAuthority === undefined
      ? days
      : wholeNumber("--authority-days", options.authorityDays ?? String(Math.max(days, defaultAuthorityDays)), maxDays);
  if (authorityDays < days)
    throw new ConfigError([
      `--authority-days ${authorityDays}: the authority would expire before its certificates, valid for --days ${days}; use at least ${days}`,
    ]);
  const hosts = (options.hosts ?? "")
    .split(",")
    .map((host) => host.trim())
    .filter((host) => host !== "");
  const written = await writeCertificates({
    folder,
    ranks,
    ranksPerProcess,
    hosts,
    days,
    authorityDays,
    keepAuthority,
  });
  const validTo = new X509Certificate(readFileSync(written[1]!)).validToDate.toISOString();
  print(options.json, { folder, files: written, validTo, ...(keepAuthority !== undefined && { keepAuthority }) }, [
    ...written,
    "",
    `Certificates of ${ranks} ranks and the coordinator, valid until ${validTo.slice(0, 10)}, ${hosts.length === 0 ? "on any host" : `on ${hosts.join(", ")}`}.`,
    "Each host needs authority.pem and the files of its ranks; the host of rank 0 also needs the coordinator's files. Keep *.key.pem secret.",
    keepAuthority === undefined
      ? "The authority's key was not kept: certificates cannot be renewed or revoked, and more ranks need a new folder."
      : `The authority is kept in ${keepAuthority}, for certs renew and certs revoke. Anyone with that file can act as any rank: do not copy it to a host of the run.`,
    `Use them with: skein-train run job.yaml --transport tls --certificates ${folder}`,
  ]);
};

const renewCommand = async (options: ChoiceOptions & { readonly days: string }): Promise<void> => {
  const { authority, certificates: folder, coordinator } = options;
  const days = wholeNumber("--days", options.days, maxDays);
  const { files, validTo } = await renewCertificates({
    authority,
    folder,
    ranks: rankList(options.rank),
    coordinator,
    days,
  });
  print(options.json, { folder, files, validTo: validTo.toISOString() }, [
    ...files,
    "",
    `Valid until ${validTo.toISOString().slice(0, 10)}. Running processes use the new files for new connections once key and certificate are on their hosts.`,
    "The old certificates stay valid until they expire; if a key may be compromised, use skein-train certs revoke first.",
  ]);
};

const revokeCommand = async (options: ChoiceOptions & { readonly certificate?: readonly string[] }): Promise<void> => {
  const { authority, certificates: folder, coordinator, certificate: certificates } = options;
  const ranks = rankList(options.rank);
  if (ranks === undefined && coordinator !== true && certificates === undefined)
    throw new ConfigError([
      "certs revoke: no certificate is given; add --rank <ranks>, --coordinator or --certificate <file>",
    ]);
  const { list, serials, count } = await revokeCertificates({ authority, folder, ranks, coordinator, certificates });
  const advice =
    ranks?.includes(0) === true && coordinator !== true
      ? ["The host of rank 0 also has the coordinator's key: add --coordinator if that host is lost."]
      : [];
  print(options.json, { list, revoked: serials, count }, [
    list,
    "",
    `${serials.length === 0 ? "No further certificate was revoked" : `Revoked ${serials.length} ${serials.length === 1 ? "certificate" : "certificates"}`}; the list contains ${count}. Copy it to every host of the run, next to authority.pem.`,
    "A run that uses a revoked certificate ends, and names the rank. To continue: skein-train certs renew for these ranks, and start the run again.",
    ...advice,
  ]);
};

/** Adds `certs init`, `certs renew` and `certs revoke` to the command line. `finish` receives the exit code. */
export const addCertsCommand = (program: Command, finish: (code: number) => void): void => {
  const run =
    <Options>(work: (options: Options) => Promise<void>) =>
    async (_: unknown, command: Command): Promise<void> => {
      await work(command.optsWithGlobals<Options & Record<string, unknown>>());
      finish(exitCodes.ok);
    };
  const certs = program.command("certs").description("create, renew and revoke certificates for transport: tls");
  certs
    .command("init")
    .description("create an authority, and certificates for the coordinator and every rank")
    .requiredOption("--ranks <count>", "number of ranks of the job")
    .option("--ranks-per-process <count>", "number of ranks per process, as threads", "1")
    .option("--hosts <names>", "names or addresses of the hosts, separated by commas; default: valid on any host")
    .option("--days <count>", "validity of the certificates in days", String(defaultDays))
    .option(
      "--keep-authority <file>",
      "keep the authority's key in this file, outside of --output, to renew and revoke certificates",
    )
    .option("--authority-days <count>", `validity of a kept authority in days (default: ${defaultAuthorityDays})`)
    .option("--output <folder>", "output folder", "certs")
    .addHelpText(
      "after",
      "\nExample:\n  skein-train certs init --ranks 4 --hosts node-1,node-2 --output certs --keep-authority ~/skein-authority.pem",
    )
    .action(run(initCommand));
  const choice = (command: Command): Command =>
    command
      .requiredOption("--authority <file>", "authority file, written by certs init --keep-authority")
      .option("--certificates <folder>", "folder of certificates, written by certs init", "certs")
      .option("--rank <ranks>", "ranks, such as 3 or 0,4-7")
      .option("--coordinator", "include the coordinator");
  choice(certs.command("renew"))
    .description("issue new keys and certificates for the same ranks and hosts, during a run or between runs")
    .option("--days <count>", "validity of the certificates in days", String(defaultDays))
    .addHelpText(
      "after",
      "\nWithout --rank and --coordinator: all certificates in the folder.\nExample:\n  skein-train certs renew --authority ~/skein-authority.pem --certificates certs --rank 3",
    )
    .action(run(renewCommand));
  choice(certs.command("revoke"))
    .description(
      "revoke all certificates of a rank, or a single one: a run that reads the list disconnects peers that use them",
    )
    .option("--certificate <file...>", "file of a certificate")
    .addHelpText(
      "after",
      "\nExample, the host of rank 3 is lost:\n  skein-train certs revoke --authority ~/skein-authority.pem --certificates certs --rank 3",
    )
    .action(run(revokeCommand));
};
