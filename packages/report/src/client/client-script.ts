import { linearTicks, tickTexts } from "../charts/ticks.ts";
import { quantityText, timeUnits } from "../quantities.ts";
import { showTips } from "./show-tips.ts";
import { sortTables } from "./sort-tables.ts";
import { zoomFlame } from "./zoom-flame.ts";
import { zoomTimeline } from "./zoom-timeline.ts";

/** The source of a function. Its lines' indentation, and the blanks where types were, are a quarter of it. */
const sourceOf = (one: (...args: never[]) => unknown): string => String(one).replaceAll(/\n\s+/g, "\n");

/**
 * The script of the page, from the sources of functions that use nothing from outside: what one needs of another is
 * handed to it here. So it is checked as all our code, needs no bundler, and works whether types were stripped from it,
 * a bundler shortened its names, or kept them by calls of its own (not both of these at once: then the name of those
 * calls is not known).
 */
export const clientScript = (): string =>
  [
    '"use strict";(()=>{',
    // Some bundlers wrap functions in a call of this name to keep their names.
    "const __name=(one)=>one;",
    `const units=${JSON.stringify(timeUnits)},quantity=${sourceOf(quantityText)},ticks=${sourceOf(linearTicks)},texts=${sourceOf(tickTexts)};`,
    "const ticksOf=(from,to,count)=>{const at=ticks(from,to,count),text=texts(at,units);return at.map((one,i)=>({at:one,text:text[i]}))};",
    `(${sourceOf(showTips)})(document);`,
    `(${sourceOf(sortTables)})(document);`,
    `(${sourceOf(zoomFlame)})(document);`,
    `(${sourceOf(zoomTimeline)})(document,(seconds)=>quantity(seconds,units),ticksOf);`,
    "})();",
  ].join("\n");
