import type { Dissection, DissectedModule } from "@skein/cost-model/large-models";
import { bytesText, rateText, secondsText, type TextColumn, textTable } from "@skein/report";

const text = (heading: string, least: number, weight: number): TextColumn => ({
  heading,
  numeric: false,
  cutAt: "end",
  least,
  weight,
});
const figure = (heading: string, weight: number): TextColumn => ({
  heading,
  numeric: true,
  cutAt: "end",
  least: 1,
  weight,
});

/** Maximum number of operators to print. */
const maxRows = 10;

const percent = (share: number): string => (100 * share).toFixed(1);

const passHeadings: Readonly<Record<DissectedModule["pass"], string>> = {
  step: "Modules of a step",
  prefill: "Modules of the prompt pass",
  decode: "Modules of a generated token",
};

/** Formats a table of modules for each pass. Equal layers share a row. */
const moduleTables = ({ modules }: Dissection, columns: number): string[] =>
  [...Map.groupBy(modules, ({ pass }) => pass)].flatMap(([pass, own]) => [
    "",
    passHeadings[pass],
    ...textTable(
      [
        text("part", 8, 5),
        text("module", 8, 6),
        figure("time", 9),
        figure("%", 8),
        text("bound by", 5, 2),
        figure("weights", 4),
        figure("saved", 3),
      ],
      own.map(({ part, repeats, module, seconds, share, boundBy, weightBytes, savedBytes }) => [
        repeats > 1 ? `${part} × ${repeats}` : part,
        module,
        secondsText(seconds),
        percent(share),
        boundBy,
        bytesText(weightBytes),
        bytesText(savedBytes),
      ]),
      columns,
    ),
  ]);

/** Formats a dissection as lines of text for a terminal. */
export const dissectionLines = (dissection: Dissection, columns = 80): string[] => {
  const { model, hardware, task, ranks, item, parameters, operators, collectives, memory, memoryBytes, capacityBytes } =
    dissection;
  const { largestBatch, itemsPerSecond, assumptions } = dissection;
  const fits =
    memoryBytes <= capacityBytes ? "fits" : `does not fit: ${bytesText(memoryBytes - capacityBytes)} too much`;
  return [
    `${model} (${rateText(parameters, "parameters")}), ${task} on ${ranks} × ${hardware}`,
    `speed     ${rateText(itemsPerSecond, `${item}s/s`)}`,
    `memory    ${bytesText(memoryBytes)} of ${bytesText(capacityBytes)} a rank; ${fits}`,
    `largest   batch of ${largestBatch.batch} a rank`,
    ...moduleTables(dissection, columns),
    "",
    `Slowest operators (${Math.min(maxRows, operators.length)} of ${operators.length})`,
    ...textTable(
      [
        text("operator", 10, 6),
        text("module", 8, 5),
        text("pass", 4, 4),
        figure("time", 9),
        figure("%", 8),
        text("bound by", 5, 2),
      ],
      operators
        .slice(0, maxRows)
        .map(({ name, module, pass, seconds, share, boundBy }) => [
          name,
          module,
          pass,
          secondsText(seconds),
          percent(share),
          boundBy,
        ]),
      columns,
    ),
    "",
    "Memory of a rank",
    ...memory.map(({ kind, bytes }) => `  ${kind.padEnd(20)} ${bytesText(bytes)}`),
    ...(collectives.length === 0
      ? []
      : [
          "",
          "Communication",
          ...textTable(
            [
              text("what", 8, 6),
              text("kind", 8, 5),
              text("axis", 4, 3),
              figure("ranks", 2),
              figure("calls", 4),
              figure("size", 7),
              figure("time each", 8),
            ],
            collectives.map(({ name, kind, axis, ranks: group, calls, bytes, seconds }) => [
              name,
              kind,
              axis,
              String(group),
              String(calls),
              bytesText(bytes),
              secondsText(seconds),
            ]),
            columns,
          ),
        ]),
    "",
    "Assumptions",
    ...assumptions.map((line) => `- ${line}`),
  ];
};
