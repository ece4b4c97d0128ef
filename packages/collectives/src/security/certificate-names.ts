import { formatRanks } from "../ranks.ts";

/** What a certificate proves its holder to be. */
export interface CertificateIdentity {
  readonly coordinator: boolean;
  /** Ranks that it may speak for: several where they are threads of one process. */
  readonly ranks: readonly number[];
  /** Whether it names hosts, beyond which it is worth nothing. */
  readonly namesHosts: boolean;
}

/** The URI that names the coordinator in a certificate. */
export const coordinatorUri = "skein:coordinator";

/** The URI that names rank `rank` in a certificate. */
export const rankUri = (rank: number): string => `skein:rank:${rank}`;

/**
 * What the alternative names of a certificate say, in the form of Node's `subjectaltname`: `URI:skein:rank:3, DNS:a`.
 * Names with commas or quotes arrive quoted there, so a name cannot pretend to be two.
 */
export const identityOf = (subjectAlternativeNames: string | undefined): CertificateIdentity => {
  const names = (subjectAlternativeNames ?? "").split(", ");
  const ranks = names.flatMap((name) => /^URI:skein:rank:(0|[1-9]\d{0,8})$/.exec(name)?.[1] ?? []).map(Number);
  return {
    coordinator: names.includes(`URI:${coordinatorUri}`),
    ranks,
    namesHosts: names.some((name) => name.startsWith("DNS:") || name.startsWith("IP Address:")),
  };
};

/** For messages: "to be rank 3", "to be the coordinator and ranks 0, 1", "nothing". */
export const provesWhat = ({ coordinator, ranks }: Pick<CertificateIdentity, "coordinator" | "ranks">): string => {
  const parts = [...(coordinator ? ["the coordinator"] : []), ...(ranks.length > 0 ? [formatRanks(ranks)] : [])];
  return parts.length === 0 ? "nothing" : `to be ${parts.join(" and ")}`;
};
