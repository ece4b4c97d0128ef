import { ArgumentError } from "@skein/tensor-core";
import { errors as joseErrors, jwtVerify, SignJWT } from "jose";
import { TokenError } from "./errors.ts";

/** Who holds a token: the process of these ranks, or the coordinator. */
export type TokenHolder = { readonly ranks: readonly number[] } | "coordinator";

export interface TokenClaims {
  readonly holder: TokenHolder;
  /** What the token answers, where its verifier had asked: a token with a nonce cannot be played again. */
  readonly nonce?: string;
}

export interface TokenOptions extends TokenClaims {
  /** Hash of the job: the token is for this job only. */
  readonly job: string;
  readonly secret: string;
  /** 1 to 300. Default 120: machines' clocks differ, and a join is a matter of seconds. */
  readonly lifetimeSeconds?: number;
}

const longestLifetimeSeconds = 300;
const clockToleranceSeconds = 30; // clocks of machines that no time service keeps together
const issuer = "skein";
// RFC 7518 §3.2: the key of HS256 has at least as many bits as its hash.
const shortestSecretBytes = 32;

/** @throws ArgumentError when a secret is too short for its purpose. */
export const checkSecret = (secret: string): void => void keyOf(secret);

const keyOf = (secret: string): Uint8Array => {
  const key = new TextEncoder().encode(secret);
  if (key.length < shortestSecretBytes)
    throw new ArgumentError(
      `the job's secret has ${key.length} bytes and needs at least ${shortestSecretBytes}; take one from newSecret(), the same for every process of the job`,
    );
  return key;
};

/** Make the secret of a job: 256 random bits, as 43 characters that are safe in environment variables. It belongs in no log and on no command line. */
export const newSecret = (): string =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

const subjectOf = (holder: TokenHolder): string => (holder === "coordinator" ? holder : `ranks:${holder.ranks.join(",")}`);

const holderOf = (subject: string): TokenHolder | undefined => {
  if (subject === "coordinator") return subject;
  const ranks = /^ranks:(\d{1,9}(?:,\d{1,9})*)$/.exec(subject)?.[1];
  return ranks === undefined ? undefined : { ranks: ranks.split(",").map(Number) };
};

/**
 * Sign a join token: a JWT (HS256) with the job as its audience and the holder's ranks as its subject.
 *
 * @throws ArgumentError when the secret is short or the lifetime out of range.
 * @example await signToken({ holder: { ranks: [2, 3] }, job, secret })
 */
export const signToken = async ({ holder, nonce, job, secret, lifetimeSeconds = 120 }: TokenOptions): Promise<string> => {
  if (!Number.isInteger(lifetimeSeconds) || lifetimeSeconds < 1 || lifetimeSeconds > longestLifetimeSeconds)
    throw new ArgumentError(
      `a token cannot live ${lifetimeSeconds} s; it takes 1 to ${longestLifetimeSeconds}, and a process that waits longer signs another`,
    );
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT(nonce === undefined ? {} : { nonce })
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuer(issuer)
    .setSubject(subjectOf(holder))
    .setAudience(job)
    .setIssuedAt(now)
    .setExpirationTime(now + lifetimeSeconds)
    .sign(keyOf(secret));
};

/**
 * Check a token: signature, job, time, and that it was short-lived from the start. Errors never repeat the token.
 *
 * @throws TokenError `token-invalid`, `token-expired` or `token-other-job`.
 */
export const verifyToken = async (
  token: string,
  { job, secret }: { readonly job: string; readonly secret: string },
): Promise<TokenClaims> => {
  const key = keyOf(secret);
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ["HS256"],
      issuer,
      audience: job,
      clockTolerance: clockToleranceSeconds,
      maxTokenAge: longestLifetimeSeconds,
      requiredClaims: ["exp", "sub"],
    });
    const holder = holderOf(payload.sub!);
    if (holder === undefined) throw new TokenError("token-invalid", "the token names no ranks; sign it with signToken");
    if (payload.exp! - payload.iat! > longestLifetimeSeconds)
      throw new TokenError(
        "token-invalid",
        `the token was made to live ${payload.exp! - payload.iat!} s, and none may live longer than ${longestLifetimeSeconds} s; sign it with signToken`,
      );
    const { nonce } = payload;
    return typeof nonce === "string" ? { holder, nonce } : { holder };
  } catch (error) {
    throw explain(error);
  }
};

const explain = (error: unknown): unknown => {
  if (error instanceof TokenError || !(error instanceof joseErrors.JOSEError)) return error;
  if (error instanceof joseErrors.JWTExpired)
    return new TokenError(
      "token-expired",
      `the token has expired, and none lives longer than ${longestLifetimeSeconds} s; sign a new one, and look at both machines' clocks if it was new`,
    );
  if (error instanceof joseErrors.JWTClaimValidationFailed && error.claim === "aud")
    return new TokenError("token-other-job", "the token is for another job; start every process of a job with the same job file");
  if (error instanceof joseErrors.JWTClaimValidationFailed && error.claim === "iat")
    return new TokenError("token-invalid", "the token is dated in the future; set the machines' clocks by one time service");
  return new TokenError(
    "token-invalid",
    "the token is not signed with this job's secret, or was altered; give every process of a job the same SKEIN_SECRET",
  );
};
