import { expect, test } from "vitest";
import { mayHaveGpu } from "./gpu-devices.ts";

const machine =
  (files: Readonly<Record<string, readonly string[]>>) =>
  (folder: string): readonly string[] =>
    files[folder] ?? [];

test("finds a GPU by its device file on Linux, and assumes one elsewhere", () => {
  expect(
    mayHaveGpu("linux", machine({ "/dev": ["null", "tty", "nvidiactl", "nvram", "dri"], "/dev/dri": ["card0"] })),
  ).toBe(false);
  expect(mayHaveGpu("linux", machine({ "/dev": ["dri"], "/dev/dri": ["by-path", "card0", "renderD128"] }))).toBe(true);
  for (const name of ["nvidia0", "dxg", "mali0", "kgsl-3d0", "nvhost-gpu"])
    expect(mayHaveGpu("linux", machine({ "/dev": [name] }))).toBe(true);
  for (const platform of ["darwin", "win32", "freebsd"]) expect(mayHaveGpu(platform, machine({}))).toBe(true);
});
