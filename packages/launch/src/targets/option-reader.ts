import { flagOf, type LaunchOptions } from "./launch-options.ts";

const memoryUnits: Readonly<Record<string, number>> = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };

/** Parses the values of options, and collects all problems so that they are reported together. */
export class OptionReader {
  readonly faults: string[] = [];
  private readonly options: LaunchOptions;

  constructor(options: LaunchOptions) {
    this.options = options;
  }

  count(key: keyof LaunchOptions, from: number, to: number = Number.MAX_SAFE_INTEGER): number | undefined {
    const text = this.options[key] as string | undefined;
    if (text === undefined) return undefined;
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= from && value <= to) return value;
    const range = to === Number.MAX_SAFE_INTEGER ? `from ${from}` : `from ${from} to ${to}`;
    this.faults.push(`${flagOf(key)} ${text}: must be a whole number ${range}; change it`);
    return undefined;
  }

  oneOf<T extends string>(key: keyof LaunchOptions, known: readonly T[]): T | undefined {
    const text = this.options[key] as string | undefined;
    if (text === undefined) return undefined;
    if ((known as readonly string[]).includes(text)) return text as T;
    this.faults.push(`${flagOf(key)} ${text}: is unknown; use one of: ${known.join(", ")}`);
    return undefined;
  }

  /** Reads an option whose value is copied unchanged into a manifest, script or label. */
  word(key: keyof LaunchOptions, pattern: RegExp, rule: string): string | undefined {
    const text = this.options[key] as string | undefined;
    if (text === undefined || (text.length <= 253 && pattern.test(text))) return text;
    this.faults.push(`${flagOf(key)} ${JSON.stringify(text)}: must be ${rule}; change it`);
    return undefined;
  }

  memoryBytes(): number | undefined {
    const text = this.options.memory;
    if (text === undefined) return undefined;
    const [, number, unit] = /^([1-9]\d{0,6})(Ki|Mi|Gi|Ti)$/.exec(text) ?? [];
    if (number !== undefined) return Number(number) * memoryUnits[unit!]!;
    this.faults.push(`--memory ${text}: must be a whole number with Ki, Mi, Gi or Ti, such as 8Gi; change it`);
    return undefined;
  }

  seconds(): number | undefined {
    const text = this.options.time;
    if (text === undefined) return undefined;
    const [, hours, minutes, seconds] = /^(\d{1,4}):([0-5]\d):([0-5]\d)$/.exec(text) ?? [];
    const total = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    if (total > 0) return total;
    this.faults.push(`--time ${text}: must be hh:mm:ss above zero, such as 04:00:00; change it`);
    return undefined;
  }
}
