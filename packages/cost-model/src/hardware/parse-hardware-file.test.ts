import fc from "fast-check";
import { expect, test } from "vitest";
import type { HardwareFile } from "./hardware.ts";
import { formatHardwareFile, parseHardwareFile } from "./parse-hardware-file.ts";

const sound: HardwareFile = {
  format: "skein-hardware",
  version: 1,
  name: "desk",
  description: "a machine under a desk",
  device: {
    name: "processor",
    kind: "cpu",
    source: "made up",
    flopsPerSecond: { f32: 5e10 },
    memoryBytesPerSecond: 2e10,
    memoryBytes: 2 ** 34,
    kernelStartSeconds: 1e-6,
    assumedEfficiency: 0.5,
    efficiencies: [{ operator: "matmul", flops: 2 ** 20, bytes: 2 ** 14, efficiency: 0.8, samples: 3 }],
  },
  topology: { ranks: 8, ranksPerHost: 4 },
  links: {
    source: "made up",
    within: { secondsPerMessage: 1e-5, secondsPerByte: 1e-10 },
    across: { secondsPerMessage: 1e-4, secondsPerByte: 1e-9 },
    reduceSecondsPerByte: 1e-10,
    contention: { penaltyPerFlow: 0.05 },
  },
};

/** Returns the text of the hardware file with another value at `path`, a path of keys. */
const withValue = (path: string, value: unknown): string => {
  const file = structuredClone(sound) as unknown as Record<string, unknown>;
  const keys = path.split(".");
  const last = keys.pop()!;
  const parent = keys.reduce((object, key) => object[key] as Record<string, unknown>, file);
  parent[last] = value;
  return JSON.stringify(file);
};

test("parses a formatted file", () => {
  expect(parseHardwareFile(formatHardwareFile(sound), "desk.json")).toEqual(sound);
  const running = {
    secondsPerStep: 0.002,
    secondsPerCollective: 1e-4,
    collectiveLatencySeconds: 3e-4,
    secondsPerByteBeside: 1e-9,
    stepVariation: 0.1,
    messageDelaySeconds: 0.003,
  };
  for (const own of [running, { ...running, overlapSlowdown: 0.2 }]) {
    const ran: HardwareFile = { ...sound, device: { ...sound.device, running: own } };
    expect(parseHardwareFile(formatHardwareFile(ran), "desk.json")).toEqual(ran);
  }
  const runs = [
    { name: "mnist", overlaps: false, measuredSeconds: 0.02, predictedSeconds: 0.021 },
    { name: "mnist beside", overlaps: true, measuredSeconds: 0.02, predictedSeconds: 0.015, spread: 0.04 },
  ];
  const calibration = { links: "made up", runs };
  expect(parseHardwareFile(formatHardwareFile({ ...sound, calibration }), "desk.json")).toEqual({
    ...sound,
    calibration,
  });
  const growth = { numHosts: 2, sharePerDoubling: 0.04 };
  const growing: HardwareFile = { ...sound, links: { ...sound.links, growth } };
  expect(parseHardwareFile(formatHardwareFile(growing), "desk.json")).toEqual(growing);
});

test.each([
  ["device.flopsPerSecond.f32", -5, /device\.flopsPerSecond\.f32 is -5: /],
  ["device.flopsPerSecond.f32", 50, /device\.flopsPerSecond\.f32 is 50: .*wrong unit/],
  ["device.memoryBytesPerSecond", 20, /device\.flopsPerSecond\.f32 .*wrong unit/],
  ["links.growth", { numHosts: 2, sharePerDoubling: -0.1 }, /links\.growth\.sharePerDoubling is -0\.1: /],
  ["links.growth", { numHosts: 0, sharePerDoubling: 0.1 }, /links\.growth\.numHosts is 0: /],
  ["device.memoryBytes", 1.5, /device\.memoryBytes is 1\.5: /],
  ["device.kernelStartSeconds", "fast", /device\.kernelStartSeconds is "fast": /],
  ["device.assumedEfficiency", 1.2, /device\.assumedEfficiency is 1\.2: /],
  ["device.running", { secondsPerStep: 0.1 }, /device\.running\.secondsPerCollective: /],
  ["device.speed", 3, /device.*[Uu]nrecognized key/],
  ["topology.ranksPerHost", 3, /topology\.ranksPerHost is 3: must divide the ranks/],
  ["links.across.secondsPerByte", -1e-9, /links\.across\.secondsPerByte is -1e-9: /],
  [
    "topology.hostsPerRack",
    2,
    /topology\.hostsPerRack is 2: topology\.hostsPerRack and links\.betweenRacks need each other/,
  ],
  ["version", 2, /version is 2: /],
])("%s of %j is refused in one line that names it, the value and the cure", (path, value, words) => {
  const read = (): unknown => parseHardwareFile(withValue(path, value), "desk.json");
  expect(read).toThrow(words);
  expect(read).toThrow(
    /^desk\.json is not a hardware file of version 1 \([^\n]*\); measure the machine with "skein-profile calibrate", or correct that value$/,
  );
});

test("any text is a hardware file or gives a one-line error", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      try {
        parseHardwareFile(text, "x.json");
        return false;
      } catch (error) {
        return !(error as Error).message.includes("\n") && (error as Error).message.length < 600;
      }
    }),
  );
});
