// Codes of Node and OpenSSL that speak of certificates, in errors of our own checks and in alerts of the peer. OpenSSL
// makes of each of its reasons a code ERR_SSL_REASON, and most are about bytes: a record that was changed on its way is
// `BAD_RECORD_MAC`.
const ofCertificates = /CERT|UNKNOWN_CA|ACCESS_DENIED|SELF_SIGNED|UNABLE_TO|^ERR_TLS|CRL/;

const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? "";

/**
 * Whether an error of a TLS connection says that one side refuses who the other is. Trying again would change nothing.
 */
export const isCertificateFault = (error: Error): boolean => ofCertificates.test(codeOf(error));

/** Whether what came is no TLS that we speak, or was altered on its way: another try may go well. */
export const isTlsFault = (error: Error): boolean =>
  !isCertificateFault(error) && (codeOf(error).startsWith("ERR_SSL") || codeOf(error) === "EPROTO");

/** What an error says, in one line: OpenSSL's own has its lines of code, and a line break. */
export const tlsReasonOf = (error: Error): string => (error as { reason?: string }).reason ?? error.message.trim();
