/** Value of a template placeholder: text with any number of lines, or a list of texts, each on separate lines. */
type Filling = string | number | readonly string[];

/** Character that represents a placeholder while lines are split. Does not occur in any text. */
const hole = "\0";

const pieceOf = (filling: Filling): string =>
  typeof filling === "object" ? filling.filter((piece) => piece !== "").join("\n") : String(filling);

const indentOf = (line: string): number => /^ */.exec(line)![0].length;

/**
 * Template tag for readable WGSL: keeps the indentation of a shader, with computed text in placeholders.
 *
 * - The common indentation of all lines, which belongs to the surrounding file, is removed, and so are the lines of the
 *   backticks.
 * - The lines of a placeholder's text get the indentation of the line that contains the placeholder.
 * - A line that consists only of empty placeholders is removed.
 *
 * @example const sums = [0, 1].map((i) => `sum_${i} += x[at + ${i}u];`); const loop = wgsl`
 *   for (var at = 0u; at < ${end}u; at += 2u) {
 *     ${sums}
 *   }
 * `;
 */
export const wgsl = (texts: TemplateStringsArray, ...fillings: readonly Filling[]): string => {
  const lines = texts.join(hole).split("\n");
  if (lines[0]!.trim() === "") lines.shift();
  if (lines.at(-1)?.trim() === "") lines.pop();
  const common = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf));
  let filled = 0;
  return lines
    .flatMap((line) => {
      const indent = line.slice(common, indentOf(line));
      const text = line
        .slice(common)
        .replaceAll(hole, () => pieceOf(fillings[filled++]!).replace(/\n(?=.)/g, `\n${indent}`));
      return line.includes(hole) && text.trim() === "" ? [] : [text];
    })
    .join("\n");
};
