import { linearTicks, tickTexts } from "../charts/ticks.ts";
import { quantityText, timeUnits } from "../quantities.ts";
import { showTips } from "./show-tips.ts";
import { sortTables } from "./sort-tables.ts";
import { zoomFlame } from "./zoom-flame.ts";
import { zoomTimeline } from "./zoom-timeline.ts";

/**
 * The script of the page, from the sources of functions that use nothing from outside: what one needs of another is handed to it here. So it is
 * checked as all our code, needs no bundler, and is the same whether types were stripped from it or a bundler shortened its names.
 */
export const clientScript = (): string =>
  [
    '"use strict";(()=>{',
    // Some bundlers wrap functions in a call of this name to keep their names.
    "const __name=(one)=>one;",
    `const units=${JSON.stringify(timeUnits)},quantity=${String(quantityText)},ticks=${String(linearTicks)},texts=${String(tickTexts)};`,
    "const ticksOf=(from,to,count)=>{const at=ticks(from,to,count),text=texts(at,units);return at.map((one,i)=>({at:one,text:text[i]}))};",
    `(${String(showTips)})(document);`,
    `(${String(sortTables)})(document);`,
    `(${String(zoomFlame)})(document);`,
    `(${String(zoomTimeline)})(document,(seconds)=>quantity(seconds,units),ticksOf);`,
    "})();",
  ].join("\n");
