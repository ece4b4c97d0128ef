import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { refusalCodes as linkCodes } from "../src/network/errors.ts";
import { requestBytes } from "../src/network/accept.ts";
import { longestFailureReport } from "../src/failure-detection/failure-report.ts";
import { defaultFlow } from "../src/network/flow.ts";
import { controlMessageBytes } from "../src/rendezvous/control-messages.ts";
import { joinBytes, refusalCodes as joinCodes } from "../src/rendezvous/handshake-messages.ts";
import { sealBytes } from "../src/security/frame-seal.ts";
import { unprovenBytes } from "../src/security/handshake.ts";
import { encodeHeader, frameFlags, type FrameType, frameTypes, headerBytes } from "../src/wire/frame.ts";
import { protocolVersion } from "../src/wire/version.ts";

const page = readFileSync(new URL("../../../docs/protocol.md", import.meta.url), "utf8");
/** Returns the cells of the table with the header row `head`, by row. */
const table = (head: string): string[][] => {
  const begin = page.indexOf(`| ${head} |`);
  expect(begin, head).toBeGreaterThan(0);
  const lines = page.slice(begin).split("\n");
  return lines
    .slice(
      2,
      lines.findIndex((line) => !line.startsWith("|")),
    )
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
};

test("docs/protocol.md lists exactly the frame types, with their numbers", () => {
  const listed = table("type | number").map(([type, number]) => [type!.replaceAll("`", ""), Number(number)]);
  expect(Object.fromEntries(listed)).toEqual(frameTypes);
  expect(listed).toHaveLength(Object.keys(frameTypes).length);
});

test("docs/protocol.md states the size limit of each frame type", () => {
  const limits: { readonly [type in FrameType]: string } = {
    hello: `${unprovenBytes}`,
    welcome: `${joinBytes} control, ${requestBytes} data`,
    refuse: `${unprovenBytes} before the proofs, then as \`welcome\``,
    data: `${defaultFlow.frameBytes}, or \`frameBytes\``,
    ping: "4 control, 0 data",
    acknowledge: "0",
    bye: "0",
    control: `${controlMessageBytes} control, 0 data`,
    error: `${longestFailureReport}`,
    challenge: `${unprovenBytes}`,
    proof: `${unprovenBytes}`,
    join: `${joinBytes} control, ${requestBytes} data`,
  };
  const listed = table("type | number").map((cells) => [cells[0]!.replaceAll("`", ""), cells.at(-1)]);
  expect(Object.fromEntries(listed)).toEqual(limits);
  expect(page).toContain(`A seal (below) adds ${sealBytes} bytes`);
});

test("docs/protocol.md states the version and the position of each header field", () => {
  expect(page).toContain(`This is protocol version ${protocolVersion.major}.${protocolVersion.minor}.`);
  expect(table("version | since").at(-1)![0]).toBe(`${protocolVersion.major}.${protocolVersion.minor}`);
  const fields = new Map(
    table("offset | bytes | field").map(([offset, bytes, field]) => [field!, [Number(offset), Number(bytes)] as const]),
  );
  const header = {
    type: "join",
    flags: frameFlags.last,
    stream: 0x01020304,
    sequence: 0x05060708,
    tag: 0x090a0b0c,
    length: 3,
  } as const;
  const bytes = encodeHeader(header, new Uint8Array(3));
  const at = (field: string): bigint => {
    const [offset, size] = fields.get(field)!;
    return [...bytes.subarray(offset, offset + size)].reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  };
  expect(at("version")).toBe(BigInt(protocolVersion.major));
  expect(at("type")).toBe(BigInt(frameTypes.join));
  for (const field of ["flags", "stream", "sequence", "tag", "length"] as const)
    expect(at(field), field).toBe(BigInt(header[field]));
  expect([...fields.values()].reduce((sum, [, size]) => sum + size, 0)).toBe(headerBytes);
  const flags = [...page.matchAll(/(\d): the payload went|(\d): the checksum covers|(\d): last frame/g)].map((found) =>
    Number(found.slice(1).find(Boolean)),
  );
  expect(flags).toEqual([frameFlags.coded, frameFlags.headerOnly, frameFlags.last]);
});

test("docs/protocol.md lists every code of a refusal", () => {
  const refused = page.slice(page.indexOf("**What is refused.**"), page.indexOf("## States"));
  const named = new Set([...refused.matchAll(/`((?:join|link|peer|protocol)-[a-z-]+)`/g)].map(([, code]) => code!));
  expect([...named].toSorted()).toEqual([...new Set([...joinCodes, ...linkCodes])].toSorted());
});
