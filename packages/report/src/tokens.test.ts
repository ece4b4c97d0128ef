import { expect, test } from "vitest";
import { kindColours, kinds, schemes } from "./tokens.ts";

type Triple = readonly [number, number, number];

const linear = (hex: string): Triple => {
  const channel = (at: number): number => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
};

const luminance = (hex: string): number => {
  const [red, green, blue] = linear(hex);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

/** Computes the contrast of two colors, as defined in WCAG 2.2. */
const contrast = (a: string, b: string): number => {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
};

/**
 * Matrices that convert linear RGB to the colors seen by a person who lacks one type of cone. Source: Machado, Oliveira
 * and Fernandes, IEEE TVCG 15, 2009, severity 1.
 */
const seenBy: Readonly<Record<string, readonly Triple[]>> = {
  everybody: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopes: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopes: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopes: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

/** Converts linear RGB to CIELAB with the white point D65. */
const lab = ([red, green, blue]: Triple): Triple => {
  const f = (value: number): number =>
    value > 216 / 24389 ? Math.cbrt(value) : (24389 / 27) * (value / 116) + 16 / 116;
  const x = f((0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047);
  const y = f(0.2126729 * red + 0.7151522 * green + 0.072175 * blue);
  const z = f((0.0193339 * red + 0.119192 * green + 0.9503041 * blue) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
};

const distance = (a: string, b: string, eye: readonly Triple[]): number => {
  const seen = (hex: string): Triple => {
    const rgb = linear(hex);
    const [red, green, blue] = eye.map((row) =>
      Math.min(1, Math.max(0, row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2])),
    );
    return lab([red!, green!, blue!]);
  };
  const [p, q] = [seen(a), seen(b)];
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
};

test.each(Object.entries(seenBy))("%s can distinguish any two kinds", (_, eye) => {
  const pairs = kinds.flatMap((a, i) => kinds.slice(i + 1).map((b) => [a, b] as const));
  const close = pairs
    .map(([a, b]) => ({ a, b, d: distance(kindColours[a].fill, kindColours[b].fill, eye) }))
    .filter(({ d }) => d < 15);
  expect(close).toEqual([]);
});

test("text on a mark, and on the page in both schemes, is readable: 4.5 to 1 (WCAG 1.4.3)", () => {
  for (const { fill, ink } of Object.values(kindColours)) expect(contrast(fill, ink), fill).toBeGreaterThanOrEqual(4.5);
  for (const { page, panel, text, quiet, accent, edge } of Object.values(schemes))
    for (const ground of [page, panel]) {
      for (const colour of [text, quiet, accent])
        expect(contrast(colour, ground), `${colour} on ${ground}`).toBeGreaterThanOrEqual(4.5);
      expect(contrast(edge, ground), `${edge} on ${ground}`).toBeGreaterThanOrEqual(3);
    }
});
