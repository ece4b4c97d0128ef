import { ArgumentError } from "@skein/tensor-core";

// Minimum length of a secret in bytes: the length of the hash that proofs use. NIST SP 800-107 §5.3.4 requires no
// longer key for HMAC, and a shorter key would weaken HMAC.
const shortestSecretBytes = 32;

/**
 * Checks the length of a secret.
 *
 * @throws ArgumentError if the secret is too short.
 */
export const checkSecret = (secret: string): void => {
  const { length } = new TextEncoder().encode(secret);
  if (length < shortestSecretBytes)
    throw new ArgumentError(
      `the job's secret has ${length} bytes and needs at least ${shortestSecretBytes}; create one with randomSecret() and pass it to every process of the job`,
    );
};

/**
 * Creates the secret of a job: 256 random bits, as 43 characters that are safe in environment variables. The secret
 * must not appear in logs or on command lines.
 *
 * @example
 * ```ts
 * console.log(randomSecret().length > 16); // true
 * ```
 */
export const randomSecret = (): string =>
  btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
