import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataError, fetchMnist, mnistFiles, takeIdx } from "../src/index.ts";
import { loadMnist } from "../src/node.ts";

describe("fetchMnist", () => {
  const all = loadMnist({ from: import.meta.url });
  const header = (type: number, ...sizes: readonly number[]): number[] => [
    0,
    0,
    8,
    type,
    ...sizes.flatMap((size) => [0, 0, size >> 8, size & 255]),
  ];
  const images = (split: "train" | "test", count: number): Uint8Array =>
    Uint8Array.from([...header(3, count, 28, 28), ...all[split].fields["inputs"]!.bytes.subarray(0, count * 784)]);
  const labels = (split: "train" | "test", count: number): Uint8Array =>
    Uint8Array.from([...header(1, count), ...all[split].fields["labels"]!.bytes.subarray(0, count)]);
  const served: Record<string, Uint8Array> = {
    [`/few/${mnistFiles.train.images}`]: images("train", 300),
    [`/few/${mnistFiles.train.labels}`]: labels("train", 300),
    [`/few/${mnistFiles.test.images}`]: takeIdx(images("test", 20), "images", 3, 5),
    [`/few/${mnistFiles.test.labels}`]: takeIdx(labels("test", 20), "labels", 1, 5),
    [`/torn/${mnistFiles.train.images}`]: images("train", 3).subarray(0, 100),
    [`/torn/${mnistFiles.train.labels}`]: labels("train", 3),
    [`/torn/${mnistFiles.test.images}`]: images("test", 3),
    [`/torn/${mnistFiles.test.labels}`]: labels("test", 3),
  };
  let server: Server;
  let origin: string;
  beforeAll(async () => {
    server = createServer(({ url }, response) => {
      const bytes = served[url!];
      response.statusCode = bytes === undefined ? 404 : 200;
      response.end(bytes);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  test("returns the same digits as loadMnist", async () => {
    const { train, test: held } = await fetchMnist(`${origin}/few/`);
    expect([train.count, held.count]).toEqual([300, 5]);
    expect(train.fields["inputs"]!.bytes).toEqual(
      new Uint8Array(all.train.fields["inputs"]!.bytes.subarray(0, 300 * 784)),
    );
    expect(held.fields["labels"]!.bytes).toEqual(new Uint8Array(all.test.fields["labels"]!.bytes.subarray(0, 5)));
  });

  test("names the address, the fault and the cure", async () => {
    const url = (folder: string): string => `${origin}/${folder}/${mnistFiles.train.images}`;
    await expect(fetchMnist(`${origin}/absent/`)).rejects.toThrow(DataError);
    await expect(fetchMnist(`${origin}/absent/`)).rejects.toThrow(
      /absent\/t.* returned HTTP status 404 instead of 200; serve the four/,
    );
    await expect(fetchMnist(`${origin}/torn/`)).rejects.toThrow(`${url("torn")} has 100 bytes`);
    await expect(fetchMnist("http://127.0.0.1:1/")).rejects.toThrow(
      /127\.0\.0\.1:1\/t.* cannot be fetched \(.*\); serve the four/,
    );
  });
});
