import { ArgumentError } from "@skein/tensor-core";

// As long as the hash that proofs are made with: NIST SP 800-107 §5.3.4 asks no more of a key for HMAC, and no less is
// worth its strength.
const shortestSecretBytes = 32;

/** @throws ArgumentError when a secret is too short for its purpose. */
export const checkSecret = (secret: string): void => {
  const { length } = new TextEncoder().encode(secret);
  if (length < shortestSecretBytes)
    throw new ArgumentError(
      `the job's secret has ${length} bytes and needs at least ${shortestSecretBytes}; take one from newSecret(), the same for every process of the job`,
    );
};

/**
 * Make the secret of a job: 256 random bits, as 43 characters that are safe in environment variables. It belongs in no
 * log and on no command line.
 */
export const newSecret = (): string =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
