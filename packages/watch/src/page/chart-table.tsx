import type { JSX } from "preact";
import { axisText, lineName, type LinesProps, valueAt } from "./shown-lines.ts";
import { axis, range } from "./store.ts";

const maxRows = 40;

/** Table of a chart's values, at evenly spaced positions along the x axis. */
export const ChartTable = ({ plan, lines, version }: LinesProps): JSX.Element => {
  void version.value;
  const within = range.value ?? { from: -Infinity, to: Infinity };
  const all = [
    ...new Set(lines.current.flatMap(({ x, length }) => thinned(x, length, within.from, within.to))),
  ].toSorted((a, b) => a - b);
  const positions = thinned(all, all.length, -Infinity, Infinity);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`${plan.title}, data`}>
      <table>
        <caption>
          {plan.title} by {axis.value}, at up to {maxRows} positions of the visible range
        </caption>
        <thead>
          <tr>
            <th scope="col">{axis.value}</th>
            {lines.current.map((line) => (
              <th scope="col" key={line.key}>
                {lineName(plan, line)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {positions.map((position) => (
            <tr key={position}>
              <th scope="row">{axisText(position)}</th>
              {lines.current.map((line) => {
                const value = valueAt(line, position);
                return <td key={line.key}>{Number.isFinite(value) ? plan.text(value) : "–"}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};

/**
 * Returns up to `maxRows` of the ascending numbers in a range, including the first and the last number in the range.
 */
const thinned = (x: ArrayLike<number>, length: number, from: number, to: number): number[] => {
  const inside: number[] = [];
  let [first, last] = [0, length - 1];
  while (first <= last && x[first]! < from) first++;
  while (last >= first && x[last]! > to) last--;
  const count = Math.min(maxRows, last - first + 1);
  for (let i = 0; i < count; i++) inside.push(x[first + Math.round((i * (last - first)) / Math.max(1, count - 1))]!);
  return inside;
};
