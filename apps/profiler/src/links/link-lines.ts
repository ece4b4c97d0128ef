import type { LinkFile, LinkFit, LinkTimes } from "@skein/collectives";
import { bytesText, rateText, secondsText, shareText, type TextColumn, textTable } from "@skein/report";

/** Maximum number of pairs of ranks to print. */
const maxPairs = 10;
const [small, large] = [2 ** 10, 2 ** 20];

const number = (heading: string, weight: number): TextColumn => ({
  heading,
  numeric: true,
  cutAt: "end",
  least: 0,
  weight,
});
const columns: readonly TextColumn[] = [
  { heading: "link", numeric: false, cutAt: "end", least: 10, weight: 9 },
  number("α", 8),
  number("β", 8),
  number("1/β", 5),
  number(bytesText(small), 7),
  number(bytesText(large), 7),
  number("off by", 3),
];

const transferSeconds = ({ secondsPerMessage, secondsPerByte }: LinkTimes, bytes: number): number =>
  secondsPerMessage + secondsPerByte * bytes;

/** Formats a time per byte in ns/B, because most values are fractions of a nanosecond. */
const perByte = (secondsPerByte: number): string => `${(secondsPerByte * 1e9).toPrecision(3)} ns/B`;

const row = (name: string, fit: LinkFit): string[] => [
  name,
  secondsText(fit.secondsPerMessage),
  perByte(fit.secondsPerByte),
  // The fitted time per byte may be 0.
  fit.secondsPerByte > 0 ? rateText(1 / fit.secondsPerByte, "B/s") : "–",
  secondsText(transferSeconds(fit, small)),
  secondsText(transferSeconds(fit, large)),
  shareText(fit.worstRelativeError),
];

/** Formats measured links as lines of text for a terminal: message costs for two sizes, and a legend. */
export const linkLines = (
  { transport, hosts, within, across, pairs, messageBytes, reduceSecondsPerByte }: LinkFile,
  width: number,
): string[] => {
  const slowest = pairs.toSorted((a, b) => transferSeconds(b, large) - transferSeconds(a, large)).slice(0, maxPairs);
  const rows = [
    ...(within ? [row("within a host", within)] : []),
    ...(across ? [row("across hosts", across)] : []),
    ...(pairs.length > 1 ? slowest.map((pair) => row(`  ${pair.from} to ${pair.to}`, pair)) : []),
  ];
  const numHidden = pairs.length - slowest.length;
  return [
    `${hosts.flat().length} ranks over ${transport}, by messages of ${bytesText(messageBytes[0]!)} to ${bytesText(messageBytes.at(-1)!)}`,
    "",
    ...textTable(columns, rows, width),
    ...(numHidden > 0 ? [`${numHidden} faster pairs are not shown`] : []),
    "",
    "A message of b bytes takes α + β · b: α per message, β per byte.",
    "off by: the largest relative error of this line, over all measured messages.",
    `Adding received values to local values takes another ${perByte(reduceSecondsPerByte)}.`,
  ];
};
