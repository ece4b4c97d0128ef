import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { identityOf, provesWhat } from "../security/certificate-names.ts";
import { TokenError } from "../security/errors.ts";
import { signToken, verifyToken } from "../security/tokens.ts";
import type { CheckedRendezvousOptions } from "./coordinator-options.ts";
import type { Hello, Refusal } from "./handshake-messages.ts";
import { mismatch } from "./membership.ts";
import { formatRanks } from "./ranks.ts";

const sameRanks = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((rank) => b.includes(rank)) && b.every((rank) => a.includes(rank));

const useOneSet = "use the files of one skein-train certs init on all hosts";

/** What a certificate leaves unproven; undefined where there is no TLS, or nothing. */
const distrust = (socket: Socket, ranks: readonly number[]): Refusal | undefined => {
  if (!(socket instanceof TLSSocket)) return undefined;
  if (!socket.authorized)
    return {
      code: "peer-identity",
      message: `the process shows no certificate of the coordinator's authority (${String(socket.authorizationError)}); ${useOneSet}`,
    };
  const proven = identityOf(socket.getPeerCertificate().subjectaltname);
  if (ranks.every((rank) => proven.ranks.includes(rank))) return undefined;
  return {
    code: "peer-identity",
    message: `the process joins with ${formatRanks(ranks)}, but its certificate proves ${provesWhat(proven)}; give each process the certificate of its ranks`,
  };
};

/**
 * Whether an applicant is who it says: a certificate that names its ranks where there is TLS, the right job, and a token for exactly its
 * ranks. The job comes before the token, so that a process of another job hears that, and not that its secret is wrong.
 */
export const examine = async (hello: Hello, socket: Socket, options: CheckedRendezvousOptions): Promise<Refusal | undefined> => {
  const distrusted = distrust(socket, hello.ranks);
  if (distrusted !== undefined) return distrusted;
  const other = mismatch(options, hello);
  if (other?.code === "join-job") return other;
  try {
    const { holder } = await verifyToken(hello.token, options);
    if (holder === "coordinator" || !sameRanks(holder.ranks, hello.ranks))
      return {
        code: "token-invalid",
        message: `the token is for ${holder === "coordinator" ? "the coordinator" : formatRanks(holder.ranks)}, and came with ${formatRanks(hello.ranks)}; sign a token for the ranks of the process`,
      };
  } catch (error) {
    if (!(error instanceof TokenError)) throw error;
    return { code: error.code, message: error.message };
  }
  return other;
};

/** The coordinator's answer to the nonce of a hello: proof that it knows the secret, worth nothing elsewhere. */
export const prove = (nonce: string, { job, secret }: CheckedRendezvousOptions): Promise<string> =>
  signToken({ holder: "coordinator", nonce, job, secret });
