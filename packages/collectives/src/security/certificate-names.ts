import { formatRanks } from "../ranks.ts";

/** Identity proven by a certificate. */
export interface CertificateIdentity {
  readonly coordinator: boolean;
  /** Ranks that the owner of the certificate may act as: all ranks that are threads of one process. */
  readonly ranks: readonly number[];
  /** Whether the certificate names hosts. If so, the certificate is valid only on these hosts. */
  readonly namesHosts: boolean;
}

/** URI of the coordinator in a certificate. */
export const coordinatorUri = "skein:coordinator";

/**
 * Returns the URI of rank `rank` in a certificate.
 *
 * @example
 * ```ts
 * console.log(rankUri(3)); // skein:rank:3
 * ```
 */
export const rankUri = (rank: number): string => `skein:rank:${rank}`;

/**
 * Parses the alternative names of a certificate in the format of Node's `subjectaltname`: `URI:skein:rank:3, DNS:a`.
 * Node quotes names that contain commas or quotes, so one name cannot be read as two names.
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

/** Describes a proven identity for messages: "to be rank 3", "to be the coordinator and ranks 0, 1", "nothing". */
export const provesWhat = ({ coordinator, ranks }: Pick<CertificateIdentity, "coordinator" | "ranks">): string => {
  const parts = [...(coordinator ? ["the coordinator"] : []), ...(ranks.length > 0 ? [formatRanks(ranks)] : [])];
  return parts.length === 0 ? "nothing" : `to be ${parts.join(" and ")}`;
};
