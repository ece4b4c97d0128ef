import { createHash, createHmac, hkdfSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { agreeMinor } from "../wire/version.ts";
import { HandshakeAcceptor, HandshakeDialler, type HandshakeContext, jobKey, unprovenBytes } from "./handshake.ts";
import { randomSecret } from "./secret.ts";

const secret = randomSecret();
const job = "job-1";
const context: HandshakeContext = {
  audience: "control",
  job,
  key: jobKey(secret, job),
  binding: Uint8Array.of(1, 2, 3),
};

type Outcome = "both" | "dialler turned away" | "acceptor turned away" | "no hello" | "no challenge";

/**
 * Runs a handshake between two processes. `onTheWay` may change each message in transit. Message 0 is the hello,
 * message 1 the challenge, message 2 the proof.
 */
const shake = (
  dialling: HandshakeContext,
  accepting: HandshakeContext,
  onTheWay: (bytes: Uint8Array, which: number) => Uint8Array = (bytes) => bytes,
): Outcome => {
  const [dialler, acceptor] = [new HandshakeDialler(dialling), new HandshakeAcceptor(accepting)];
  let challenged: ReturnType<HandshakeAcceptor["challenge"]>;
  try {
    challenged = acceptor.challenge(onTheWay(dialler.hello(), 0));
  } catch {
    return "no hello";
  }
  if ("what" in challenged) return "acceptor turned away";
  let answer: ReturnType<HandshakeDialler["answer"]>;
  try {
    answer = dialler.answer(onTheWay(challenged.challenge, 1));
  } catch {
    return "no challenge";
  }
  if ("what" in answer) return "dialler turned away";
  const proven = acceptor.prove(onTheWay(answer.proof, 2));
  if (proven === undefined) return "acceptor turned away";
  const payload = Uint8Array.of(7, 8, 9);
  expect(proven.opener.open("join", answer.proven.sealer.sealed("join", payload))).toEqual(Buffer.from(payload));
  expect(answer.proven.opener.open("welcome", proven.sealer.sealed("welcome", payload))).toEqual(Buffer.from(payload));
  expect(proven.minor).toBe(answer.proven.minor);
  return "both";
};

describe("a handshake", () => {
  test("proves to both sides that the other knows the secret, in small messages", () => {
    expect(shake(context, context)).toBe("both");
    const longest = { ...context, job: "j".repeat(256) };
    const sizes: number[] = [];
    expect(shake(longest, longest, (bytes) => (sizes.push(bytes.byteLength), bytes))).toBe("both");
    expect(Math.max(...sizes)).toBeLessThanOrEqual(unprovenBytes);
  });

  test("fails if any bit of a message is changed in transit", () => {
    fc.assert(
      fc.property(fc.nat(2), fc.nat(), fc.nat(7), (message, at, bit) => {
        const flip = (bytes: Uint8Array, which: number): Uint8Array => {
          const changed = Uint8Array.from(bytes);
          if (which === message) changed[at % changed.length]! ^= 1 << bit;
          return changed;
        };
        expect(shake(context, context, flip)).not.toBe("both");
      }),
      { numRuns: 500 },
    );
  });

  test.each<[string, Partial<HandshakeContext>, Outcome]>([
    ["another secret", { key: jobKey(randomSecret(), job) }, "dialler turned away"],
    ["another job", { job: "job-2", key: jobKey(secret, "job-2") }, "acceptor turned away"],
    ["the key of another job of the same secret", { key: jobKey(secret, "job-2") }, "dialler turned away"],
    ["another purpose", { audience: "data" }, "no hello"],
    [
      "another connection, as of a man in the middle of TLS",
      { binding: Uint8Array.of(1, 2, 4) },
      "dialler turned away",
    ],
    ["no TLS at one end", { binding: new Uint8Array(0) }, "dialler turned away"],
  ])("fails with %s", (_, different, outcome) => {
    expect(shake(context, { ...context, ...different })).toBe(outcome);
  });

  test("rejects repeated and reflected proofs", () => {
    const [dialler, acceptor] = [new HandshakeDialler(context), new HandshakeAcceptor(context)];
    const challenged = acceptor.challenge(dialler.hello());
    if ("what" in challenged) throw new Error("refused");
    const answer = dialler.answer(challenged.challenge);
    if ("what" in answer) throw new Error("refused");
    // The acceptor's proof is not a valid proof of a dialer.
    const reflected = new HandshakeAcceptor(context);
    reflected.challenge(dialler.hello());
    expect(reflected.prove(challenged.challenge.subarray(0, 32))).toBeUndefined();
    // The proof is valid only for its own connection, and only one time.
    const again = new HandshakeAcceptor(context);
    again.challenge(dialler.hello());
    expect(again.prove(answer.proof)).toBeUndefined();
    expect(acceptor.prove(answer.proof)).toBeDefined();
    expect(acceptor.prove(answer.proof)).toBeUndefined();
    // An earlier challenge is not a valid response to a new hello.
    expect(new HandshakeDialler(context).answer(challenged.challenge)).toMatchObject({ what: "secret" });
  });
});

/**
 * Independent implementation of the handshake from the formulas of docs/protocol.md, without code of the package,
 * because other versions depend on the bytes on the wire.
 */
const protocolKeys = (hello: Uint8Array, challenge: Uint8Array): ((label: string) => Buffer) => {
  const hmac = (key: Uint8Array, text: Uint8Array | string): Buffer => createHmac("sha256", key).update(text).digest();
  const behindLength = (part: Uint8Array): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(part.byteLength);
    return Buffer.concat([length, part]);
  };
  const parts = [Buffer.from(context.audience), context.binding, hello, challenge].map(behindLength);
  const transcript = createHash("sha256")
    .update(Buffer.concat([Buffer.from("skein handshake 2\0"), ...parts]))
    .digest();
  const session = hmac(new Uint8Array(hkdfSync("sha256", secret, "", `skein job ${job}`, 32)), transcript);
  return (label) => hmac(session, label);
};

test("proofs and seals are those of docs/protocol.md", () => {
  const [dialler, acceptor] = [new HandshakeDialler(context), new HandshakeAcceptor(context)];
  const challenged = acceptor.challenge(dialler.hello());
  if ("what" in challenged) throw new Error("refused");
  const [proof, body] = [challenged.challenge.subarray(0, 32), challenged.challenge.subarray(32)];
  const derive = protocolKeys(dialler.hello(), body);
  expect(Buffer.from(proof)).toEqual(derive("who accepts knows the secret"));
  const answer = dialler.answer(challenged.challenge);
  if ("what" in answer) throw new Error("refused");
  expect(Buffer.from(answer.proof)).toEqual(derive("who dials knows the secret"));
  const proven = acceptor.prove(answer.proof)!;
  for (const [sealer, label] of [
    [answer.proven.sealer, "frames of who dials"],
    [proven.sealer, "frames of who accepts"],
  ] as const) {
    for (let number = 0; number < 3; number++) {
      const framePrefix = Buffer.from([number, 0, 0, 0, 0, 0, 0, 0, 12]); // 12 is the type number of a join frame.
      const sealed = createHmac("sha256", derive(label)).update(framePrefix).update("payload").digest();
      expect(Buffer.from(sealer.seal("join", Buffer.from("payload")))).toEqual(sealed.subarray(0, 16));
    }
  }
});

describe("minor versions", () => {
  test("adjacent versions use the lower one, all others are incompatible", () => {
    expect([0, 1, 2, 3].map((peer) => agreeMinor(1, peer))).toEqual([0, 1, 1, undefined]);
    // Both processes compute the same result.
    fc.assert(fc.property(fc.nat(255), fc.nat(255), (a, b) => void expect(agreeMinor(a, b)).toBe(agreeMinor(b, a))));
  });

  test.each<[number, number, Outcome]>([
    [4, 4, "both"],
    [4, 5, "both"],
    [5, 4, "both"],
    [4, 6, "acceptor turned away"],
    [6, 4, "acceptor turned away"],
  ])("%d meets %d", (dialling, accepting, outcome) => {
    expect(shake({ ...context, minor: dialling }, { ...context, minor: accepting })).toBe(outcome);
  });

  test("the dialer checks the version itself, whatever the other side accepts", () => {
    const dialler = new HandshakeDialler({ ...context, minor: 4 });
    for (const [minor, taken] of [
      [5, true],
      [6, false],
    ] as const) {
      const body = Buffer.from(JSON.stringify({ minor, nonce: "0".repeat(64) }));
      const challenge = Buffer.concat([protocolKeys(dialler.hello(), body)("who accepts knows the secret"), body]);
      expect(dialler.answer(challenge)).toMatchObject(
        taken ? { proven: { minor: 4 } } : { what: "minor", own: "2.4", peer: "2.6" },
      );
    }
  });

  test("unknown fields of an adjacent version are ignored", () => {
    const more = (bytes: Uint8Array, which: number): Uint8Array =>
      which === 0 ? Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(bytes).toString()), zeal: 1 })) : bytes;
    // The added field is ignored, but the handshake fails because the dialer did not send it.
    expect(shake(context, context, more)).toBe("dialler turned away");
  });
});
