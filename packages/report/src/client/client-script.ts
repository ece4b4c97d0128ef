import { linearTicks, tickTexts } from "../charts/ticks.ts";
import { quantityText, timeUnits } from "../quantities.ts";
import { showTips } from "./show-tips.ts";
import { sortTables } from "./sort-tables.ts";
import { zoomFlame } from "./zoom-flame.ts";
import { zoomTimeline } from "./zoom-timeline.ts";

/**
 * Returns the source of a function without indentation. Indentation, together with the blanks left by removed types, is
 * a quarter of the source.
 */
const sourceOf = (one: (...args: never[]) => unknown): string => String(one).replaceAll(/\n\s+/g, "\n");

/**
 * Returns the script of the page, assembled from the sources of self-contained functions. The script passes the
 * dependencies of each function as arguments. So the code is type-checked like all other code, and no bundler is
 * needed. The assembly works if types are stripped, if a bundler shortens names, or if a bundler keeps names with
 * helper calls. It does not work with both shortened names and helper calls, because the name of the helper is then
 * unknown.
 */
export const clientScript = (): string =>
  [
    '"use strict";(()=>{',
    // Some bundlers wrap functions in a call to this helper to keep the names of the functions.
    "const __name=(one)=>one;",
    `const units=${JSON.stringify(timeUnits)},quantity=${sourceOf(quantityText)},ticks=${sourceOf(linearTicks)},texts=${sourceOf(tickTexts)};`,
    "const ticksOf=(from,to,count)=>{const at=ticks(from,to,count),text=texts(at,units);return at.map((one,i)=>({at:one,text:text[i]}))};",
    `(${sourceOf(showTips)})(document);`,
    `(${sourceOf(sortTables)})(document);`,
    `(${sourceOf(zoomFlame)})(document);`,
    `(${sourceOf(zoomTimeline)})(document,(seconds)=>quantity(seconds,units),ticksOf);`,
    "})();",
  ].join("\n");
