/** What fills a hole: a piece of text of any number of lines, or a list of pieces, each on lines of its own. */
type Filling = string | number | readonly string[];

/** Stands for a hole while lines are cut; no text has it. */
const hole = "\0";

const pieceOf = (filling: Filling): string =>
  typeof filling === "object" ? filling.filter((piece) => piece !== "").join("\n") : String(filling);

const indentOf = (line: string): number => /^ */.exec(line)![0].length;

/**
 * Write WGSL as it will read: indented as a shader is, with what is computed in holes that have names.
 *
 * - What all lines of the template are indented by belongs to the file around it, and is taken off, with the lines of
 *   the backticks.
 * - The lines of a hole keep the indentation of the line in which it stands.
 * - A line of nothing but holes, all of them empty, is left out.
 *
 * @example
 * const sums = [0, 1].map((i) => `sum_${i} += x[at + ${i}u];`);
 * const loop = wgsl`
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
