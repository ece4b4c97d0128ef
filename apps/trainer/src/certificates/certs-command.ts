import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { defaultAuthorityDays, defaultDays, writeCertificates } from "./certificate-folder.ts";
import { renewCertificates } from "./renew-certificates.ts";
import { revokeCertificates } from "./revoke-certificates.ts";
import { ConfigError, exitCodes } from "../errors.ts";
import { asTyped } from "../console/own-command.ts";
import { writeStdout } from "../console/terminal.ts";

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

/** Whose certificates are meant, and by which authority. */
interface ChoiceOptions {
  readonly authority: string;
  readonly certificates: string;
  readonly rank?: string;
  readonly coordinator?: boolean;
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

/** Ranks as people list them: `3`, `0,4-7`. */
const rankList = (text: string | undefined): number[] | undefined =>
  text?.split(",").flatMap((part) => {
    const match = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part.trim());
    const [first, last] = [Number(match?.[1]), Number(match?.[2] ?? match?.[1])];
    if (match === null || first > last || last >= mostRanks)
      throw new ConfigError([`--rank ${text}: must be ranks such as 3 or 0,4-7, each below ${mostRanks}`]);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });

const print = (json: boolean | undefined, facts: object, lines: readonly string[]): void => {
  writeStdout(`${json === true ? JSON.stringify(facts) : asTyped(lines.join("\n"))}\n`);
};

const initCommand = async (options: InitOptions): Promise<void> => {
  const ranks = wholeNumber("--ranks", options.ranks, mostRanks);
  const ranksPerProcess = wholeNumber("--ranks-per-process", options.ranksPerProcess, ranks);
  if (ranks % ranksPerProcess !== 0)
    throw new ConfigError([
      `--ranks-per-process ${ranksPerProcess}: does not divide ${ranks} ranks; every process holds as many`,
    ]);
  const days = wholeNumber("--days", options.days, mostDays);
  const { output: folder, keepAuthority } = options;
  if (options.authorityDays !== undefined && keepAuthority === undefined)
    throw new ConfigError([
      `--authority-days ${options.authorityDays}: is of use only where the authority is kept; add --keep-authority <file>`,
    ]);
  const authorityDays =
    keepAuthority === undefined
      ? days
      : wholeNumber(
          "--authority-days",
          options.authorityDays ?? String(Math.max(days, defaultAuthorityDays)),
          mostDays,
        );
  if (authorityDays < days)
    throw new ConfigError([
      `--authority-days ${authorityDays}: ends before the certificates, which --days ${days} asks for; take at least as many`,
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
    "Each host needs authority.pem and the files of its ranks, and that of rank 0 the coordinator's too. Keep *.key.pem to yourself.",
    keepAuthority === undefined
      ? "The authority's key was not kept: nothing can be renewed or revoked, and for more ranks make a new folder."
      : `The authority is kept in ${keepAuthority}, for certs renew and certs revoke. Who has that file can be any rank: it belongs on no host of the run.`,
    `Use them with: skein-train run job.yaml --transport tls --certificates ${folder}`,
  ]);
};

const renewCommand = async (options: ChoiceOptions & { readonly days: string }): Promise<void> => {
  const { authority, certificates: folder, coordinator } = options;
  const days = wholeNumber("--days", options.days, mostDays);
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
    `Valid until ${validTo.toISOString().slice(0, 10)}. Processes that run take them for new connections once the files are on their hosts, key and certificate together.`,
    "The certificates before stay valid until their end; where a key may be in wrong hands, use skein-train certs revoke first.",
  ]);
};

const revokeCommand = async (options: ChoiceOptions & { readonly certificate?: readonly string[] }): Promise<void> => {
  const { authority, certificates: folder, coordinator, certificate: certificates } = options;
  const ranks = rankList(options.rank);
  if (ranks === undefined && coordinator !== true && certificates === undefined)
    throw new ConfigError([
      "certs revoke: nothing is named; add --rank <ranks>, --coordinator or --certificate <file>",
    ]);
  const { list, serials, count } = await revokeCertificates({ authority, folder, ranks, coordinator, certificates });
  const advice =
    ranks?.includes(0) === true && coordinator !== true
      ? ["The host of rank 0 has the coordinator's key too: add --coordinator where the host is lost."]
      : [];
  print(options.json, { list, revoked: serials, count }, [
    list,
    "",
    `${serials.length === 0 ? "Nothing new was revoked" : `Revoked ${serials.length} ${serials.length === 1 ? "certificate" : "certificates"}`}; the list names ${count}. Put it on every host of the run, beside authority.pem.`,
    "A run that uses one of them ends, and names the rank. To go on: skein-train certs renew for those ranks, and start the run again.",
    ...advice,
  ]);
};

/** Add `certs init`, `certs renew` and `certs revoke` to the command line. `finish` takes the exit code. */
export const addCertsCommand = (program: Command, finish: (code: number) => void): void => {
  const run =
    <Options>(work: (options: Options) => Promise<void>) =>
    async (_: unknown, command: Command): Promise<void> => {
      await work(command.optsWithGlobals<Options & Record<string, unknown>>());
      finish(exitCodes.ok);
    };
  const certs = program.command("certs").description("make certificates for transport: tls, renew and revoke them");
  certs
    .command("init")
    .description("make an authority, and certificates for the coordinator and every rank")
    .requiredOption("--ranks <count>", "ranks of the job")
    .option("--ranks-per-process <count>", "ranks that are threads of one process", "1")
    .option("--hosts <names>", "names or addresses of the hosts, with commas between; default: valid on any host")
    .option("--days <count>", "how long they are valid", String(defaultDays))
    .option(
      "--keep-authority <file>",
      "keep the authority's key there, outside of --output, to renew and revoke certificates",
    )
    .option(
      "--authority-days <count>",
      `how long an authority that is kept is valid (default: ${defaultAuthorityDays})`,
    )
    .option("--output <folder>", "where to write them", "certs")
    .addHelpText(
      "after",
      "\nExample:\n  skein-train certs init --ranks 4 --hosts node-1,node-2 --output certs --keep-authority ~/skein-authority.pem",
    )
    .action(run(initCommand));
  const choice = (command: Command): Command =>
    command
      .requiredOption("--authority <file>", "what certs init --keep-authority wrote")
      .option("--certificates <folder>", "what certs init wrote", "certs")
      .option("--rank <ranks>", "of these ranks: 3, or 0,4-7")
      .option("--coordinator", "of the coordinator");
  choice(certs.command("renew"))
    .description("issue new keys and certificates for the same ranks and hosts, while a run lasts or before the next")
    .option("--days <count>", "how long they are valid", String(defaultDays))
    .addHelpText(
      "after",
      "\nWithout --rank and --coordinator: of all in the folder.\nExample:\n  skein-train certs renew --authority ~/skein-authority.pem --certificates certs --rank 3",
    )
    .action(run(renewCommand));
  choice(certs.command("revoke"))
    .description(
      "revoke all certificates of a rank, or one by its file: a run that sees the list cuts off who shows it",
    )
    .option("--certificate <file...>", "a certificate by its file")
    .addHelpText(
      "after",
      "\nExample, the host of rank 3 is lost:\n  skein-train certs revoke --authority ~/skein-authority.pem --certificates certs --rank 3",
    )
    .action(run(revokeCommand));
};
