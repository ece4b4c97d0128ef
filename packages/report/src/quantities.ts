/**
 * Units as pairs of size and name, smallest unit first. Sizes are relative to the base unit, which has size 1, and are
 * multiples of the smallest size.
 */
export type Units = readonly (readonly [size: number, name: string])[];

export const timeUnits: Units = [
  [1e-9, "ns"],
  [1e-6, "µs"],
  [1e-3, "ms"],
  [1, "s"],
];
export const byteUnits: Units = [
  [1, "B"],
  [2 ** 10, "KiB"],
  [2 ** 20, "MiB"],
  [2 ** 30, "GiB"],
  [2 ** 40, "TiB"],
];
export const decimalUnits: Units = [
  [1, ""],
  [1e3, "k"],
  [1e6, "M"],
  [1e9, "G"],
  [1e12, "T"],
  [1e15, "P"],
];

/**
 * Formats a number with three digits in the largest unit in which the number is at least 1: 0.00123 → "1.23 ms". A
 * value that is not finite is formatted as "–".
 *
 * Self-contained: the page embeds the source of this function.
 */
export const quantityText = (value: number, units: Units): string => {
  if (!Number.isFinite(Number(value.toPrecision(3)))) return "–"; // Rounding the largest numbers results in infinity.
  const magnitude = Math.abs(value);
  // Zero is written in the base unit: 0 s, not 0 ns.
  let index =
    value === 0 ? units.findIndex(([size]) => size === 1) : units.findLastIndex(([size]) => magnitude >= size);
  index = Math.max(0, index);
  const digits = (count: number): string => {
    // Numbers of bytes have no decimals.
    if (Number.isInteger(count) && units[index]![0] === 1 && units[0]![0] === 1) return String(count);
    const rounded = Number(count.toPrecision(3));
    if (rounded === 0) return "0";
    return Math.abs(rounded) >= 1000
      ? String(Math.round(count))
      : rounded.toFixed(Math.min(9, 2 - Math.floor(Math.log10(Math.abs(rounded)))));
  };
  // After rounding, 999.9 µs becomes 1.00 ms.
  const next = units[index + 1];
  if (next !== undefined && Number(digits(magnitude / units[index]![0])) * units[index]![0] >= next[0] * (1 - 1e-12))
    index++;
  const [size, name] = units[index]!;
  return `${digits(value / size)} ${name}`.trim();
};

/** Formats seconds in milliseconds, with three digits: 0.0123456 → "12.3 ms". */
export const millisecondsText = (seconds: number): string => `${(1000 * seconds).toPrecision(3)} ms`;

export const secondsText = (seconds: number): string => quantityText(seconds, timeUnits);

export const bytesText = (bytes: number): string => quantityText(bytes, byteUnits);

/** Formats a rate with three digits and a unit prefix: 3.2e9 and "FLOP/s" → "3.20 GFLOP/s". */
export const rateText = (rate: number, unit: string): string => {
  const text = quantityText(rate, decimalUnits);
  return `${text}${/\d$/.test(text) ? " " : ""}${unit}`;
};

/** Formats a fraction as a percentage: 0.1234 → "12.3 %", 0 → "0 %". */
export const shareText = (share: number): string => {
  if (!Number.isFinite(share)) return "–";
  const percent = 100 * share;
  return `${Math.abs(percent) >= 99.95 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
};

/**
 * Formats a number with `digits` significant digits and no unit, for table columns: 0.012345 → "0.0123". Undefined is
 * formatted as "–".
 */
export const digitsText = (value: number | undefined, digits = 3): string => {
  const rounded = Number(value?.toPrecision(digits)); // Rounding the largest numbers results in infinity.
  if (!Number.isFinite(rounded)) return "–";
  if (rounded === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  return magnitude < -4 || magnitude > 14
    ? rounded.toExponential(1)
    : rounded.toFixed(Math.max(0, digits - 1 - magnitude));
};
