import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckpointError, type Files, nodeFiles, sha256 } from "@skein/cli/node";
import { NdArray, writeSafetensors } from "@skein/tensor-core";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  commitCheckpoint,
  discardPartial,
  hasCheckpoint,
  newestCheckpoint,
  partContent,
  rankFile,
  requireSameTensors,
  sharedFile,
  specsText,
} from "./checkpoint.ts";
import { checkpointSecret, encodeManifest, type Manifest } from "./checkpoint-manifest.ts";
import { checkpointsFolder, type SavedFile, writePart } from "./checkpoint-part.ts";

let output: string;
beforeEach(() => {
  output = mkdtempSync(join(tmpdir(), "skein-checkpoint-"));
});
afterEach(() => rmSync(output, { recursive: true }));

const tensors = (value: number): Map<string, NdArray> =>
  new Map([["params.dense.weight", NdArray.from([value, 2, 3, 4], [2, 2])]]);

/** Returns the shared tensors after `step` steps. */
const shared = (step: number): Map<string, NdArray> => tensors(step).set("step", NdArray.scalar(step, "u32"));

const manifestOf = (step: number, files: readonly SavedFile[]): Manifest => ({
  format: "skein-checkpoint",
  version: 2,
  step,
  data: { epoch: Math.floor(step / 10), step: step % 10, stepsPerEpoch: 10 },
  worldSize: 1,
  modelHash: sha256("model"),
  jobHash: sha256("job"),
  files: [...files],
});

const save = (step: number, { files = nodeFiles, keep = 3 }: { files?: Files; keep?: number } = {}): string => {
  const parts = [
    writePart(files, output, step, sharedFile, partContent(shared(step))),
    writePart(files, output, step, rankFile(0), partContent(tensors(-step))),
  ];
  return commitCheckpoint(files, output, manifestOf(step, parts), { newest: keep });
};

/** Changes a manifest, and writes it with a matching digest. */
const reseal = (folder: string, changes: Partial<Manifest>): void => {
  const path = join(folder, "manifest.json");
  const { sha256: _, ...manifest } = JSON.parse(readFileSync(path, "utf8")) as Manifest & { sha256: string };
  writeFileSync(path, encodeManifest({ ...manifest, ...changes }));
};

const names = (): string[] => readdirSync(checkpointsFolder(output)).sort();

test("reads saved tensors bit for bit", () => {
  const folder = save(7);
  const checkpoint = newestCheckpoint(nodeFiles, output, () => expect.unreachable());
  expect(checkpoint.folder).toBe(folder);
  expect(checkpoint.manifest.step).toBe(7);
  expect(checkpoint.tensors.get(sharedFile)!.get("params.dense.weight")!.toNumbers()).toEqual([7, 2, 3, 4]);
  expect(checkpoint.tensors.get(rankFile(0))!.get("params.dense.weight")!.toNumbers()).toEqual([-7, 2, 3, 4]);
});

test("keeps the newest, by number and not by spelling", () => {
  for (const step of [99_999_999, 100_000_000, 5]) save(step, { keep: 2 });
  expect(names()).toEqual(["step-100000000", "step-99999999"]);
  expect(newestCheckpoint(nodeFiles, output, () => {}).manifest.step).toBe(100_000_000);
});

describe("skips a damaged checkpoint and reports the reason", () => {
  test.each<[string, (folder: string) => void, string]>([
    [
      "torn",
      (folder) => truncateSync(join(folder, sharedFile), 50),
      "shared.safetensors has 50 bytes, but its manifest says",
    ],
    ["grown", (folder) => appendFileSync(join(folder, rankFile(0)), "x"), "bytes of its manifest: it has"],
    [
      "with an endless part",
      (folder) => {
        rmSync(join(folder, sharedFile));
        symlinkSync("/dev/zero", join(folder, sharedFile));
      },
      "bytes of its manifest: it is no regular file",
    ],
    [
      "with an endless manifest",
      (folder) => {
        rmSync(join(folder, "manifest.json"));
        symlinkSync("/dev/zero", join(folder, "manifest.json"));
      },
      "manifest.json is missing or damaged",
    ],
    [
      "altered",
      (folder) => {
        const path = join(folder, sharedFile);
        const bytes = readFileSync(path);
        bytes[bytes.length - 1]! ^= 1;
        writeFileSync(path, bytes);
      },
      "shared.safetensors does not have the SHA-256 of its manifest: the file was altered",
    ],
    ["without a part", (folder) => rmSync(join(folder, rankFile(0))), "rank-0.safetensors cannot be read"],
    ["without a manifest", (folder) => rmSync(join(folder, "manifest.json")), "manifest.json is missing or damaged"],
    [
      "with a manifest that names a file elsewhere",
      (folder) => reseal(folder, { files: [{ name: "../../x.safetensors", bytes: 1, sha256: sha256("x") }] }),
      "manifest.json is not a manifest of this version",
    ],
    [
      "under the name of another step",
      (folder) => renameSync(folder, folder.replace(/2$/, "5")),
      "manifest.json says step 2, but is in",
    ],
    [
      "with a manifest of another step",
      (folder) => reseal(folder, { step: 7 }),
      "says step 7, but also epoch 0 and step 2 of 10",
    ],
    [
      "with the tensors of another step",
      (folder) => {
        const part = writePart(nodeFiles, output, 2, sharedFile, partContent(shared(3)));
        renameSync(join(checkpointsFolder(output), ".writing-step-00000002", sharedFile), join(folder, sharedFile));
        reseal(folder, { files: [part] });
      },
      "manifest.json says step 2, but step of shared.safetensors is 3",
    ],
  ])("%s", (_, damage, reason) => {
    save(1);
    damage(save(2));
    const reasons: string[] = [];
    expect(newestCheckpoint(nodeFiles, output, (text) => reasons.push(text)).manifest.step).toBe(1);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toContain(reason);
    expect(reasons[0]).toMatch(/step-0000000[25]\/[^\n]*$/);
  });

  test("no valid checkpoint, or no checkpoint", () => {
    expect(() => newestCheckpoint(nodeFiles, output, () => {})).toThrow(
      /no checkpoint to resume from: .* has no checkpoints/,
    );
    truncateSync(join(save(1), sharedFile), 9);
    expect(() => newestCheckpoint(nodeFiles, output, () => {})).toThrow("has 1, but none is valid");
  });
});

describe("skips a checkpoint with a flipped bit with one line, and uses the one before", () => {
  /** Returns file operations that flip one bit of one file when it is read. */
  const flipping = (path: string, bit: number): Files => ({
    ...nodeFiles,
    read: (asked, maxBytes) => {
      const bytes = new Uint8Array(nodeFiles.read(asked, maxBytes));
      if (asked === path) bytes[bit >> 3]! ^= 1 << (bit & 7);
      return bytes;
    },
  });
  const passesOver = (path: string, bit: number): void => {
    const reasons: string[] = [];
    const found = newestCheckpoint(flipping(path, bit), output, (reason) => reasons.push(reason)).manifest.step;
    const [reason] = reasons;
    if (found === 1 && reasons.length === 1 && reason!.startsWith(path) && !reason!.includes("\n")) return;
    expect.fail(`bit ${bit} of ${path}: step ${found} was taken, and said was ${JSON.stringify(reasons)}`);
  };

  test("every bit of a manifest", () => {
    save(1);
    const path = join(save(2), "manifest.json");
    const bits = 8 * readFileSync(path).length;
    expect(bits).toBeGreaterThan(5500);
    for (let bit = 0; bit < bits; bit++) passesOver(path, bit);
  });

  test("any bit of any tensor file", () => {
    save(1);
    const folder = save(2);
    const bits = fc.constantFrom(sharedFile, rankFile(0)).chain((name) => {
      const path = join(folder, name);
      return fc.record({ path: fc.constant(path), bit: fc.nat(8 * readFileSync(path).length - 1) });
    });
    fc.assert(
      fc.property(bits, ({ path, bit }) => passesOver(path, bit)),
      { numRuns: 300 },
    );
  });
});

describe("signed checkpoints", () => {
  const secret = "a secret of this run";
  const commit = (step: number, key?: string): string => {
    const part = writePart(nodeFiles, output, step, sharedFile, partContent(shared(step)));
    return commitCheckpoint(nodeFiles, output, manifestOf(step, [part]), { newest: 3 }, key);
  };
  const taken = (key: string | undefined): [number, ...string[]] => {
    const reasons: string[] = [];
    const { step } = newestCheckpoint(nodeFiles, output, (reason) => reasons.push(reason), key).manifest;
    return [step, ...reasons];
  };

  test("whoever has the secret takes what it has signed alone", () => {
    commit(1, secret);
    expect(taken(secret)).toEqual([1]);
    const unsigned = commit(2);
    expect(taken(secret)).toEqual([
      1,
      `${join(unsigned, "manifest.json")} is not signed, but SKEIN_CHECKPOINT_SECRET is set`,
    ]);
    const other = commit(2, "a secret of another");
    expect(taken(secret)).toEqual([
      1,
      expect.stringContaining(`${join(other, "manifest.json")} is signed with a different secret`),
    ]);
  });

  test("one who lacks the secret can read them, and sees a flipped bit of a signature", () => {
    commit(1);
    const path = join(commit(2, secret), "manifest.json");
    expect(taken(undefined)).toEqual([2]);
    writeFileSync(
      path,
      readFileSync(path, "utf8").replace(
        /("signature": ")(.)/,
        (_, before: string, digit: string) => before + (digit === "0" ? "1" : "0"),
      ),
    );
    expect(taken(undefined)).toEqual([1, expect.stringContaining("does not match its own SHA-256")]);
  });

  test("a secret that is none is refused", () => {
    expect(checkpointSecret({})).toBeUndefined();
    expect(checkpointSecret({ SKEIN_CHECKPOINT_SECRET: secret })).toBe(secret);
    expect(() => checkpointSecret({ SKEIN_CHECKPOINT_SECRET: "short" })).toThrow("has 5 bytes, but needs at least 16");
  });
});

describe("a disk that fills up", () => {
  /** Returns file operations that simulate a full disk: write number `writes` stops in the middle. */
  const fullAfter = (writes: number): Files => ({
    ...nodeFiles,
    writeDurably: (path, content) => {
      if (writes-- > 0) return nodeFiles.writeDurably(path, content);
      writeFileSync(path, content[0]!.subarray(0, content[0]!.length / 2));
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    },
  });

  test.each([0, 1, 2])("at write %i, leaves the checkpoint before it and, once discarded, nothing else", (writes) => {
    save(1);
    expect(() => save(2, { files: fullAfter(writes) })).toThrow("ENOSPC");
    expect(newestCheckpoint(nodeFiles, output, () => expect.unreachable()).manifest.step).toBe(1);
    discardPartial(nodeFiles, output);
    expect(names()).toEqual(["step-00000001"]);
  });
});

test("a crash before the rename leaves no checkpoint under the final name", () => {
  const files: Files = { ...nodeFiles, rename: () => expect.fail("crash") };
  expect(() => save(3, { files })).toThrow("crash");
  expect(existsSync(join(checkpointsFolder(output), "step-00000003"))).toBe(false);
  expect(() => newestCheckpoint(nodeFiles, output, () => {})).toThrow("has no checkpoints");
});

test("parts and manifest reach the disk before the rename, the rename before old ones go", () => {
  save(1);
  const order: string[] = [];
  const logged = Object.fromEntries(
    Object.entries(nodeFiles).map(([name, operation]) => [
      name,
      (...args: never[]) => {
        order.push(name);
        return (operation as (...args: never[]) => unknown)(...args);
      },
    ]),
  ) as unknown as Files;
  save(2, { files: logged, keep: 1 });
  expect(order.filter((name) => name !== "makeFolder" && name !== "list" && name !== "size")).toEqual([
    "writeDurably",
    "writeDurably",
    "writeDurably",
    "syncFolder",
    "rename",
    "syncFolder",
    "remove",
  ]);
});

describe("a step that is saved again", () => {
  /** Returns file operations that simulate a process which dies before rename or removal number `change`. */
  const dyingBefore = (change: number): Files => {
    let changes = 0;
    const count =
      <Args extends readonly unknown[]>(operation: (...args: Args) => void) =>
      (...args: Args): void => {
        if (changes++ === change) throw new Error("killed");
        operation(...args);
      };
    return { ...nodeFiles, rename: count(nodeFiles.rename), remove: count(nodeFiles.remove) };
  };

  test.each([0, 1, 2])("exists at every moment: killed before change %i of names", (change) => {
    save(4, { keep: 1 });
    expect(() => save(4, { files: dyingBefore(change), keep: 1 })).toThrow("killed");
    expect(hasCheckpoint(nodeFiles, output)).toBe(true);
    expect(newestCheckpoint(nodeFiles, output, () => expect.unreachable()).manifest.step).toBe(4);
    discardPartial(nodeFiles, output);
    expect(names()).toEqual(["step-00000004"]);
  });
});

describe("a run that continues while its checkpoints are read", () => {
  /** Returns file operations that call `run` before each read, to simulate a concurrent run. */
  const readingBeside = (run: (path: string) => void): Files => ({
    ...nodeFiles,
    read: (path, maxBytes) => {
      run(path);
      return nodeFiles.read(path, maxBytes);
    },
  });

  test("removes the checkpoint that is read: the next one is used", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 8 }),
        fc.integer({ min: 1, max: 3 }),
        (at, keep) => {
          rmSync(checkpointsFolder(output), { recursive: true, force: true });
          let [step, numReads] = [1, 0];
          save(step, { keep });
          const files = readingBeside(() => {
            if (at.includes(numReads++)) save(++step, { keep });
          });
          const found = newestCheckpoint(files, output, () => expect.unreachable()).manifest.step;
          expect(found).toBeGreaterThan(step - keep - 1);
        },
      ),
      { numRuns: 10 },
    );
  });

  test("replaces the checkpoint that is read: parts are not mixed", () => {
    save(4);
    let isSaved = false;
    const files = readingBeside((path) => {
      if (!path.endsWith(rankFile(0)) || isSaved) return;
      isSaved = true;
      const parts = [
        writePart(nodeFiles, output, 4, sharedFile, partContent(shared(4))),
        writePart(nodeFiles, output, 4, rankFile(0), partContent(tensors(44))),
      ];
      commitCheckpoint(nodeFiles, output, manifestOf(4, parts), { newest: 1 });
    });
    const { tensors: read } = newestCheckpoint(files, output, () => expect.unreachable());
    expect(read.get(rankFile(0))!.get("params.dense.weight")!.toNumbers()[0]).toBe(44);
  });

  test("saves a step again: the reader finds the old checkpoint, and changes nothing", () => {
    save(4, { keep: 1 });
    const found: number[] = [];
    const files: Files = {
      ...nodeFiles,
      rename: (from, to) => {
        nodeFiles.rename(from, to);
        expect(hasCheckpoint(nodeFiles, output)).toBe(true);
        found.push(newestCheckpoint(nodeFiles, output, () => expect.unreachable()).manifest.step);
      },
    };
    save(4, { files, keep: 1 });
    expect(found).toEqual([4, 4]);
    expect(names()).toEqual(["step-00000004"]);
  });

  test("removes each checkpoint before it is read: one line reports it", () => {
    save(1, { keep: 1 });
    let step = 1;
    const files = readingBeside(() => void save(++step, { keep: 1 }));
    expect(() => newestCheckpoint(files, output, () => expect.unreachable())).toThrow(
      /the run removed 20 checkpoints, each before it was read; .*checkpoint\.keep/,
    );
  });
});

describe("a part that is not in the folder of the manifest", () => {
  test.each<[string, (path: string) => void, RegExp]>([
    [
      "is missed",
      (path) => rmSync(path),
      /checkpoint of step 2 was abandoned: .*rank-0.safetensors was written by a rank, but cannot be read here \(ENOENT\)/,
    ],
    ["is too short", (path) => truncateSync(path, 9), /rank-0.safetensors has 9 bytes here, but its rank wrote \d+/],
  ])("%s, and no checkpoint is created from the rest", (_, damage, message) => {
    save(1, { keep: 1 });
    const parts = [sharedFile, rankFile(0)].map((name) =>
      writePart(nodeFiles, output, 2, name, partContent(shared(2))),
    );
    damage(join(checkpointsFolder(output), ".writing-step-00000002", rankFile(0)));
    expect(() => commitCheckpoint(nodeFiles, output, manifestOf(2, parts), { newest: 1 })).toThrow(message);
    expect(newestCheckpoint(nodeFiles, output, () => expect.unreachable()).manifest.step).toBe(1);
  });
});

test("a file written piece by piece equals the output of safetensors", () => {
  const several = new Map([...shared(3), ["a", NdArray.from([1, 0, 1], [3], "u8")], ["b", NdArray.from([], [0])]]);
  const { sha256: hash, bytes } = writePart(nodeFiles, output, 3, "x.safetensors", partContent(several));
  const whole = writeSafetensors(several);
  expect([hash, bytes]).toEqual([sha256(whole), whole.length]);
});

test("rejects a different model, and lists the first tensors that differ", () => {
  const spec = (shape: number[]): NdArray => NdArray.zeros("f32", shape);
  const saved = new Map([
    ["a", spec([2])],
    ["b", spec([3])],
    ["gone", spec([1])],
  ]);
  expect(() => requireSameTensors(saved, saved, "x")).not.toThrow();
  expect(() =>
    requireSameTensors(
      saved,
      new Map([
        ["a", spec([2])],
        ["b", spec([4])],
        ["new", spec([5])],
      ]),
      "runs/x",
    ),
  ).toThrow(
    new CheckpointError(
      [
        "runs/x is of a different model or optimizer; 3 of 3 tensors differ; resume with the job that wrote it:",
        "  b: f32[3] in the checkpoint, f32[4] in the job's model",
        "  new: f32[5] in the job's model, not in the checkpoint",
        "  gone: f32[1] in the checkpoint, not in the job's model",
      ].join("\n"),
    ),
  );
  const many = new Map(Array.from({ length: 9 }, (_, i) => [`t${i}`, spec([1])]));
  expect(() => requireSameTensors(new Map(), many, "x")).toThrow("and 4 more");
  expect(specsText(saved)).toBe("a f32[2]\nb f32[3]\ngone f32[1]\n");
});
