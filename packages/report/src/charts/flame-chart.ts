import { escapeText } from "../html.ts";
import { secondsText, shareText } from "../quantities.ts";
import type { Kind } from "../tokens.ts";
import { chart, isSize, percent } from "./svg.ts";

/** A model scope, or an operator in a scope, with its total time including children. */
export interface FlameNode {
  readonly name: string;
  readonly kind: Kind;
  readonly seconds: number;
  readonly children: readonly FlameNode[];
}

const rowHeight = 21;
/**
 * Minimum width of a cell with a visible name, as a fraction of the chart's width. The name of a narrower cell is only
 * in its title until the cell is opened, because thousands of invisible names would double the size of a page.
 */
const minLabelled = 0.03;

const depthOf = ({ children }: FlameNode): number =>
  1 + children.reduce((most, child) => Math.max(most, depthOf(child)), 0);

/**
 * Draws nested times as SVG: the root node at the top, and the children of each node below it, largest first. The width
 * of a cell is proportional to the seconds of its node. Nodes without time have no cell.
 *
 * The SVG is static; `zoomFlame` adds a script that opens cells on a click.
 */
export const flameChart = (root: FlameNode, { label }: { readonly label: string }): string => {
  if (!isSize(root.seconds)) return chart("flame", label, 60, []);
  const cells: string[] = [];
  const draw = ({ name, kind, seconds, children }: FlameNode, begin: number, depth: number): void => {
    const width = seconds / root.seconds;
    const words = `${name}: ${secondsText(seconds)}, ${shareText(width)}`;
    const text = width < minLabelled ? "" : `<text x="4" y="14">${escapeText(name)}</text>`;
    const box = `x="${percent(begin / root.seconds)}" y="${depth * rowHeight}" width="${percent(width)}" height="20"`;
    cells.push(`<svg class="cell k-${kind}" ${box}><title>${escapeText(words)}</title><rect/>${text}</svg>`);
    let childBegin = begin;
    for (const child of children.filter(({ seconds }) => isSize(seconds)).toSorted((a, b) => b.seconds - a.seconds)) {
      draw(child, childBegin, depth + 1);
      childBegin += child.seconds;
    }
  };
  draw(root, 0, 0);
  return chart("flame", label, depthOf(root) * rowHeight, cells);
};
