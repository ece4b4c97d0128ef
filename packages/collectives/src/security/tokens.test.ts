import fc from "fast-check";
import { SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import { TokenError } from "./errors.ts";
import { newSecret, signToken, verifyToken } from "./tokens.ts";

const job = "job-1";
const secret = newSecret();

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "admitted",
    (error: unknown) => {
      expect(error).toBeInstanceOf(TokenError);
      return (error as TokenError).code;
    },
  );

/** A token that signToken would not make. */
const forged = (claims: Record<string, unknown>, key = secret, alg = "HS256"): Promise<string> => {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ iss: "skein", aud: job, sub: "ranks:0", iat: now, exp: now + 60, ...claims })
    .setProtectedHeader({ alg })
    .sign(new TextEncoder().encode(key));
};

test("a token says to whom it belongs, and nothing else admits", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.constant("coordinator" as const), fc.record({ ranks: fc.array(fc.nat(99_999), { minLength: 1, maxLength: 9 }) })),
      fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
      async (holder, nonce) => {
        const token = await signToken({ holder, job, secret, ...(nonce === undefined ? {} : { nonce }) });
        expect(await verifyToken(token, { job, secret })).toEqual({ holder, ...(nonce === undefined ? {} : { nonce }) });
        expect(await codeOf(verifyToken(token, { job: "job-2", secret }))).toBe("token-other-job");
        expect(await codeOf(verifyToken(token, { job, secret: newSecret() }))).toBe("token-invalid");
      },
    ),
    { numRuns: 50 },
  );
});

test("a token with any character changed admits nobody", async () => {
  const token = await signToken({ holder: { ranks: [3] }, job, secret });
  await fc.assert(
    fc.asyncProperty(fc.nat(token.length - 1), fc.constantFrom("A", "z", "0", "."), async (at, character) => {
      const changed = token.slice(0, at) + character + token.slice(at + 1);
      // The last character of base64 holds bits that decode to nothing: then the bytes, and so the signature, are the same.
      fc.pre(changed !== token && at < token.length - 1);
      expect(await codeOf(verifyToken(changed, { job, secret }))).toBe("token-invalid");
    }),
  );
});

describe("a token is refused", () => {
  const now = Math.floor(Date.now() / 1000);
  test.each<[string, Promise<string>, string]>([
    ["that has expired", forged({ iat: now - 200, exp: now - 100 }), "token-expired"],
    ["that is too old, whatever it says of its end", forged({ iat: now - 400, exp: now + 1000 }), "token-expired"],
    ["that would live too long", forged({ exp: now + 301 }), "token-invalid"],
    ["that is from the future", forged({ iat: now + 100, exp: now + 200 }), "token-invalid"],
    ["without an end", forged({ exp: undefined }), "token-invalid"],
    ["without a subject", forged({ sub: undefined }), "token-invalid"],
    ["for a subject of another form", forged({ sub: "ranks:0,-1" }), "token-invalid"],
    ["of another issuer", forged({ iss: "other" }), "token-invalid"],
    [
      "with no algorithm",
      Promise.resolve(`${btoa('{"alg":"none"}')}.${btoa(`{"iss":"skein","aud":"${job}","sub":"ranks:0"}`)}.`),
      "token-invalid",
    ],
    ["that is none", Promise.resolve("hello"), "token-invalid"],
  ])("%s", async (_, token, code) => {
    expect(await codeOf(verifyToken(await token, { job, secret }))).toBe(code);
  });

  test("with another algorithm, although the key is right", async () => {
    const long = secret + newSecret(); // as long as HS512 wants it
    expect(await codeOf(verifyToken(await forged({}, long), { job, secret: long }))).toBe("admitted");
    expect(await codeOf(verifyToken(await forged({}, long, "HS512"), { job, secret: long }))).toBe("token-invalid");
  });

  test("but not for a clock that differs by less than half a minute", async () => {
    expect(await codeOf(verifyToken(await forged({ iat: now + 20, exp: now + 100 }), { job, secret }))).toBe("admitted");
    expect(await codeOf(verifyToken(await forged({ iat: now - 100, exp: now - 20 }), { job, secret }))).toBe("admitted");
  });
});

test("secrets are 256 bits, each another, and shorter ones are not taken", async () => {
  const secrets = Array.from({ length: 100 }, newSecret);
  expect(new Set(secrets).size).toBe(100);
  for (const one of secrets) expect(one).toMatch(/^[\w-]{43}$/);
  await expect(signToken({ holder: "coordinator", job, secret: "short" })).rejects.toThrow(/has 5 bytes and needs at least 32/);
  await expect(signToken({ holder: "coordinator", job, secret, lifetimeSeconds: 301 })).rejects.toThrow(
    /cannot live 301 s; it takes 1 to 300/,
  );
});
