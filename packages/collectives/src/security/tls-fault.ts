// Codes of Node and OpenSSL for certificate faults, in errors of local checks and in alerts of the peer. OpenSSL's
// codes have the form ERR_SSL_REASON. Most OpenSSL codes concern damaged bytes: `BAD_RECORD_MAC` is a record that was
// changed in transit.
const ofCertificates = /CERT|UNKNOWN_CA|ACCESS_DENIED|SELF_SIGNED|UNABLE_TO|^ERR_TLS|CRL/;

const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? "";

/**
 * Whether an error of a TLS connection means that one process refuses the identity of the other process. A retry would
 * fail again.
 */
export const isCertificateFault = (error: Error): boolean => ofCertificates.test(codeOf(error));

/** Whether the received bytes are not TLS of a supported version, or were altered in transit. A retry may succeed. */
export const isTlsFault = (error: Error): boolean =>
  !isCertificateFault(error) && (codeOf(error).startsWith("ERR_SSL") || codeOf(error) === "EPROTO");

/** Returns the reason of an error in one line. OpenSSL's messages contain source lines and a line break. */
export const tlsReasonOf = (error: Error): string => (error as { reason?: string }).reason ?? error.message.trim();
