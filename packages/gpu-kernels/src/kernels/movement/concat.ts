import { bytesPerElement, type DType } from "@skein/tensor-core";
import type { Pass } from "../../kernel.ts";
import { movingLanes, type UnitBytes, unitBinding, unitFunction, unitPass, unitSizes, unitType } from "./unit.ts";
import { wgsl } from "../../wgsl.ts";

/** Range of columns that one operand fills in the concatenated rows, in elements. */
interface Columns {
  readonly input: number;
  readonly begin: number;
  readonly width: number;
}

/** Operands concatenated within rows of `rowWidth` elements, and the range of columns that each operand fills. */
export interface JoinedRows {
  readonly rows: number;
  readonly rowWidth: number;
  readonly columns: readonly Columns[];
}

/**
 * Returns groups of adjacent operands that are not yet in the output, at most `most` operands per group. Skips operands
 * without elements.
 */
const groupsOf = (columns: readonly Columns[], placed: readonly boolean[], most: number): Columns[][] => {
  const groups: Columns[][] = [];
  let open = false;
  for (const column of columns) {
    if (column.width === 0) continue;
    if (placed[column.input] === true) {
      open = false;
    } else if (open && groups.at(-1)!.length < most) {
      groups.at(-1)!.push(column);
    } else {
      groups.push([column]);
      open = true;
    }
  }
  return groups;
};

/**
 * Returns WGSL that reads the unit at `row` and `column`, counted from the first unit of the group. A chain of
 * comparisons finds the operand.
 */
const choose = (group: readonly Columns[], step: number): string => {
  const first = group[0]!.begin;
  return group
    .map(({ input, begin, width }, i) => {
      const start = (begin - first) / step;
      const chosen = `bits_x${input}(row * ${width / step}u + column${start === 0 ? "" : ` - ${start}u`})`;
      return i === group.length - 1
        ? `return ${chosen};`
        : `if (column < ${start + width / step}u) { return ${chosen}; }`;
    })
    .join("\n");
};

/** Copies all operands, so that the complete output is written. */
const wholePass = (
  { rows, rowWidth }: JoinedRows,
  group: readonly Columns[],
  elementBytes: number,
  bytes: UnitBytes,
): Pass => {
  const step = bytes / elementBytes;
  return unitPass({
    label: `concat ${group.length} operands ${bytes} bytes`,
    bindings: group.map(({ input }) => unitBinding(`x${input}`, bytes, { input }, "read")),
    bytes,
    units: (rows * rowWidth) / step,
    code: wgsl`
      ${group.map(({ input }) => unitFunction(`x${input}`, bytes))}
      fn element(at: u32) -> ${unitType(bytes)} {
        let row = at / ${rowWidth / step}u;
        let column = at % ${rowWidth / step}u;
        ${choose(group, step)}
      }
    `,
  });
};

/** Copies some operands whose columns consist of complete units: every invocation copies one unit to its position. */
const unitColumnsPass = (
  { rows, rowWidth }: JoinedRows,
  group: readonly Columns[],
  elementBytes: number,
  bytes: UnitBytes,
): Pass => {
  const step = bytes / elementBytes;
  const begin = group[0]!.begin;
  const width = (group.at(-1)!.begin + group.at(-1)!.width - begin) / step;
  const units = rows * width;
  return {
    label: `concat ${group.length} operands ${bytes} bytes`,
    bindings: [
      ...group.map(({ input }) => unitBinding(`x${input}`, bytes, { input }, "read")),
      unitBinding("y", bytes, { output: 0 }, "write"),
    ],
    workgroupSize: movingLanes,
    groups: Math.ceil(units / movingLanes),
    sizes: { units },
    code: wgsl`
      ${group.map(({ input }) => unitFunction(`x${input}`, bytes))}
      fn element(row: u32, column: u32) -> ${unitType(bytes)} {
        ${choose(group, step)}
      }
      fn main(group: u32, lane: u32) {
        let at = group * ${movingLanes}u + lane;
        if (at >= sizes.units) { return; }
        let row = ${rows === 1 ? "0u" : `at / ${width}u`};
        let column = ${rows === 1 ? "at" : `at % ${width}u`};
        y[${rows === 1 ? "" : `row * ${rowWidth / step}u + `}${begin / step}u + column] = element(row, column);
      }
    `,
  };
};

/**
 * Copies some operands whose columns start or end within a word: every invocation updates a word of the output and
 * keeps the other elements of the word.
 */
const wordsPass = ({ rows, rowWidth }: JoinedRows, group: readonly Columns[], elementBytes: 1 | 2): Pass => {
  const perWord = 4 / elementBytes;
  const begin = group[0]!.begin;
  const width = group.at(-1)!.begin + group.at(-1)!.width - begin;
  const firstWord = rows === 1 ? Math.floor(begin / perWord) : 0;
  const endWord = Math.ceil((rows === 1 ? begin + width : rows * rowWidth) / perWord);
  const parts = Array.from(
    { length: perWord },
    (_, i) => `(element(${perWord}u * word + ${i}u) << ${8 * elementBytes * i}u)`,
  );
  return {
    label: `concat ${group.length} operands by words`,
    bindings: [
      ...group.map(({ input }) => unitBinding(`x${input}`, elementBytes, { input }, "read")),
      unitBinding("y", elementBytes, { output: 0 }, "write"),
    ],
    workgroupSize: movingLanes,
    groups: Math.ceil((endWord - firstWord) / movingLanes),
    sizes: { first: firstWord, end: endWord },
    code: wgsl`
      ${group.map(({ input }) => unitFunction(`x${input}`, elementBytes))}
      ${unitFunction("y", elementBytes)}
      fn element(at: u32) -> u32 {
        let row = at / ${rowWidth}u;
        let column = at % ${rowWidth}u - ${begin}u;
        if (column >= ${width}u) { return bits_y(at); }
        ${choose(group, 1)}
      }
      fn main(group: u32, lane: u32) {
        let word = sizes.first + group * ${movingLanes}u + lane;
        if (word >= sizes.end) { return; }
        y[word] = ${parts.join(" | ")};
      }
    `,
  };
};

/**
 * Concatenates the columns of operands, several operands per pass. Cost: each element that is not already in the output
 * is read and written once. A word that contains elements of several passes is written once by each of these passes.
 *
 * @param placed Whether each operand is already in the output.
 * @param most Maximum number of operands that one pass can bind.
 */
export const concatPasses = (joined: JoinedRows, dtype: DType, placed: readonly boolean[], most: number): Pass[] => {
  const elementBytes = bytesPerElement[dtype];
  return groupsOf(joined.columns, placed, most).map((group) => {
    const counts = [
      ...(joined.rows === 1 ? [] : [joined.rowWidth]),
      ...group.flatMap(({ begin, width }) => [begin, width]),
    ];
    const bytes = unitSizes.find(
      (size) => size >= elementBytes && counts.every((count) => count % (size / elementBytes) === 0),
    )!;
    if (group.reduce((sum, { width }) => sum + width, 0) === joined.rowWidth)
      return wholePass(joined, group, elementBytes, bytes);
    return bytes >= 4
      ? unitColumnsPass(joined, group, elementBytes, bytes)
      : wordsPass(joined, group, elementBytes as 1 | 2);
  });
};
