import { ConfigError, describeError, redactSecrets } from "@skein/cli/node";
import { redactCommand } from "../src/provenance/redact-command.ts";
import { flatJob } from "../src/readers/flat-job.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

test.each([
  ["https://x.org/a.tar?X-Amz-Signature=1f2e&part=3", "https://x.org/a.tar?X-Amz-Signature=…&part=…"],
  ["see https://me:pw@x.org/a.tar; then go on", "see https://…@x.org/a.tar; then go on"],
  ['["https://x.org/a?sig=1","s3://b/c?k=2"]', '["https://x.org/a?sig=…","s3://b/c?k=…"]'],
  ["https://x.org/a?justatoken", "https://x.org/a?…"],
  ["https://x.org/a?sig=a=b==#access_token=t", "https://x.org/a?sig=…#access_token=…"],
  ["cannot be read (https://x.org/a?sig=1).", "cannot be read (https://x.org/a?sig=…)."],
  ["https://x.org/mail@home/a?b=", "https://x.org/mail@home/a?b=…"],
  ["who? me@home, a=b&c=d", "who? me@home, a=b&c=d"],
  ["no module /home/me/https:/x.org/a.ts?sig=1", "no module /home/me/https:/x.org/a.ts?sig=…"],
  ["https://x.org/{000..146}.tar", "https://x.org/{000..146}.tar"],
])("%s is redacted as %s", (text, expected) => {
  expect(redactSecrets(text)).toBe(expected);
});

/** Reference implementation of the redaction with the shortest regular expressions, in quadratic time. */
const byTheRule = (text: string): string =>
  text.replaceAll(/\b([a-z][a-z0-9+.-]*:\/{1,2})([^\s"'`<>\\]+)/gi, (_, scheme: string, rest: string) => {
    const [, user = "", place = "", values = ""] = /^([^/?#]*@)?([^?#]*)(.*)$/s.exec(rest)!;
    const told = values.replace(
      /[^&#=?]+=?[^&#?]*/g,
      (pair) => `${/^[^=]*=/.exec(pair)?.[0] ?? ""}…${/[;,.:)\]}]*$/.exec(pair)![0]}`,
    );
    return `${scheme}${user && "…@"}${place}${told}`;
  });

test("a text is redacted by the rule, whatever its URLs look like", () => {
  const piece = fc.constantFrom(..."aZ9_-+.:/?#&=@;,)} '\n\\ſ", "://", "https://", "a-a-", "?k=v", ";;;a");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const text = pieces.join("");
      expect(redactSecrets(text)).toBe(byTheRule(text));
    }),
    { numRuns: 3000 },
  );
});

test.each([
  ["rows that may be schemes", "a-", "", ""],
  ["schemes that lead nowhere", "a-a:", "", ""],
  ["ends of sentences", ";", "https://x/?", "a"],
  ["users", "a@", "https://", "/?k"],
  ["names", "a=", "https://x/?", ""],
  ["values", "a&", "https://x/?", ""],
  ["addresses", "https://x/?a ", "", ""],
])("the cost of %s is linear in their number", (_, piece, before, after) => {
  const text = `${before}${piece.repeat(2 ** 20 / piece.length)}${after}`;
  const told = redactSecrets(text); // quadratic time would be hours
  expect(told.slice(0, 5)).toBe(text.slice(0, 5));
});

test("an error of any length keeps its beginning and end, without its secrets", () => {
  const { message, stack } = describeError(new Error(`${"layer-".repeat(1e5)}https://me:SECRET@x/; do this`));
  expect(message.length).toBeLessThan(8100);
  expect(stack.length).toBeLessThan(16_100);
  expect(message.slice(0, 12)).toBe("layer-layer-");
  expect(message.slice(6990)).toMatch(/^[layer-]+… \(\d+ characters left out\) …[layer-]+https:\/\/…@x\/; do this$/);
  const cutInPassword = describeError(
    new Error(`${" ".repeat(6980)}https://me:SECRET${"x".repeat(5000)}@host/?k=SECRET${"x".repeat(9000)}`),
  );
  expect(JSON.stringify(cutInPassword)).not.toContain("SECRET");
});

const word = fc.stringMatching(/^[A-Za-z0-9%+/_~-]{1,12}$/);

test("no query value and no password stays in a text", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(word, word), { minLength: 1, maxLength: 4 }),
      word,
      fc.string(),
      (pairs, user, rest) => {
        const query = pairs.map(([name, value]) => `${name.replaceAll("/", "")}=SECRET${value}`).join("&");
        const told = redactSecrets(`${rest} https://${user.replaceAll("/", "")}:SECRET@host/a?${query} ${rest}`);
        expect(told).not.toContain("SECRET");
        expect(redactSecrets(told)).toBe(told);
      },
    ),
  );
});

const signed = "https://x.org/a.tar?X-Amz-Signature=1f2e";

test("job options are recorded without secrets in URLs and in modules", () => {
  expect(
    flatJob({
      data: { kind: "text", file: [signed, "b.txt"], tokenizer: "words" },
      model: { kind: "module", options: { apiKey: "k", auth: { token: "t" }, tokens: 3 } },
    }),
  ).toEqual({
    "data.kind": "text",
    "data.file": '["https://x.org/a.tar?X-Amz-Signature=…","b.txt"]',
    "data.tokenizer": "words",
    "model.kind": "module",
    "model.options.apiKey": "…",
    "model.options.auth.token": "…",
    "model.options.tokens": "3",
  });
});

test("a command is recorded with its tokenizer, and without secrets in its URLs", () => {
  expect(
    redactCommand(["run", "--set", `data.file=${signed}`, "--set", "data.tokenizer=words", "--api-key", "k"]),
  ).toEqual([
    "run",
    "--set",
    "data.file=https://x.org/a.tar?X-Amz-Signature=…",
    "--set",
    "data.tokenizer=words",
    "--api-key",
    "…",
  ]);
});

test("errors quote URLs without their secrets", () => {
  expect(new ConfigError([`data.file is "${signed}", which is wrong`]).message).not.toContain("1f2e");
  const { message, stack } = describeError(new TypeError(`no answer of ${signed}`));
  expect([message, stack].join()).not.toContain("1f2e");
});
